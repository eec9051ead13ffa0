import { MCPServerStdio, MCPServerStreamableHttp } from '@openai/agents';
import { http, objectOf, runTask, server } from './task.mjs';

const common = { name: 'claude-code', timeout: 60_000, useStructuredContent: true };
const mcp = http
  ? new MCPServerStreamableHttp({ ...common, url: http.url, requestInit: { headers: http.headers } })
  : new MCPServerStdio({ ...common, ...server });
await mcp.connect();
await mcp.listTools();
await runTask(async (tool, args) => objectOf(await mcp.callTool(tool, args)));
await mcp.close();
