import { createMCPClient } from '@ai-sdk/mcp';
import { StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { objectOf, runTask, server } from './task.mjs';

const client = await createMCPClient({ transport: new StdioMCPTransport(server) });
const tools = await client.tools();
await runTask(async (tool, args) => objectOf(await tools[tool].execute(args, { toolCallId: 'interop', messages: [] })));
await client.close();
