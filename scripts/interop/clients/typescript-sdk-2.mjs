// Protocol 2026-07-28: forms come as the answer of a call, which the client makes again with what the person said.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answerForm } from './forms.mjs';
import { objectOf, runTask, server } from './task.mjs';

const client = new Client(
  { name: 'interop', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
client.setRequestHandler('elicitation/create', ({ params }) => answerForm(params));
await client.connect(new StdioClientTransport(server));
await client.listTools();
await runTask(async (name, args) => objectOf(await client.callTool({ name, arguments: args })), true);
await client.close();
