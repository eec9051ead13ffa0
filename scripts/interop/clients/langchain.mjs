import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { http, objectOf, runTask, server } from './task.mjs';

const entry = http ? { transport: 'http', ...http } : { transport: 'stdio', ...server };
const client = new MultiServerMCPClient({ mcpServers: { 'claude-code': entry } });
const tools = await client.getTools();
await runTask(async (name, args) => objectOf(await tools.find((tool) => tool.name === name).invoke(args)));
await client.close();
