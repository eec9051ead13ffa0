import { createMCPClient, ElicitationRequestSchema } from '@ai-sdk/mcp';
import { StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { answerForm } from './forms.mjs';
import { http, objectOf, runTask, server } from './task.mjs';

const client = await createMCPClient({
  transport: http ? { type: 'http', ...http } : new StdioMCPTransport(server),
  capabilities: { elicitation: {} },
});
client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => answerForm(params));
const tools = await client.tools();
await runTask(
  async (tool, args) => objectOf(await tools[tool].execute(args, { toolCallId: 'interop', messages: [] })),
  true,
);
await client.close();
