import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { answerForm } from './forms.mjs';
import { http, objectOf, runTask, server } from './task.mjs';

const client = new Client({ name: 'interop', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => answerForm(params));
let updates = 0;
client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void updates++);
await client.connect(
  http
    ? new StreamableHTTPClientTransport(new URL(http.url), { requestInit: { headers: http.headers } })
    : new StdioClientTransport(server),
);
await client.listTools();
const { prompts } = await client.listPrompts();
const { resources } = await client.listResources();
for (const { uri } of resources) await client.subscribeResource({ uri });
await runTask(
  async (name, args) => objectOf(await client.callTool({ name, arguments: args })),
  true,
  () => ({ extras: { prompts: prompts.length, resources: resources.length, updates } }),
);
await client.close();
