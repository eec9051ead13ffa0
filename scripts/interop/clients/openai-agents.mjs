import { MCPServerStdio } from '@openai/agents';
import { objectOf, runTask, server } from './task.mjs';

const mcp = new MCPServerStdio({ ...server, name: 'claude-code', timeout: 60_000, useStructuredContent: true });
await mcp.connect();
await mcp.listTools();
await runTask(async (tool, args) => objectOf(await mcp.callTool(tool, args)));
await mcp.close();
