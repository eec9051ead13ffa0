import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { answerForm } from './forms.mjs';
import { objectOf, runTask, server } from './task.mjs';

const client = new Client({ name: 'interop', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => answerForm(params));
await client.connect(new StdioClientTransport(server));
await client.listTools();
await runTask(async (name, args) => objectOf(await client.callTool({ name, arguments: args })), true);
await client.close();
