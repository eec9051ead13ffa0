import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { objectOf, runTask, server } from './task.mjs';

const client = new MultiServerMCPClient({ mcpServers: { 'claude-code': { transport: 'stdio', ...server } } });
const tools = await client.getTools();
await runTask(async (name, args) => objectOf(await tools.find((tool) => tool.name === name).invoke(args)));
await client.close();
