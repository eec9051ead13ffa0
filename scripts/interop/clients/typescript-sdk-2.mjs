// Protocol 2026-07-28: forms come as the answer of a call, which the client makes again with what the person said.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answerForm } from './forms.mjs';
import { http, objectOf, runTask, server } from './task.mjs';

const client = new Client(
  { name: 'interop', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
client.setRequestHandler('elicitation/create', ({ params }) => answerForm(params));
let updates = 0;
client.setNotificationHandler('notifications/resources/updated', () => void updates++);
await client.connect(
  http
    ? new StreamableHTTPClientTransport(new URL(http.url), { requestInit: { headers: http.headers } })
    : new StdioClientTransport(server),
);
await client.listTools();
const { prompts } = await client.listPrompts();
const { resources } = await client.listResources();
await client.listen({ resourceSubscriptions: resources.map(({ uri }) => uri) });
await runTask(
  async (name, args) => objectOf(await client.callTool({ name, arguments: args })),
  true,
  () => ({ extras: { prompts: prompts.length, resources: resources.length, updates } }),
);
await client.close();
