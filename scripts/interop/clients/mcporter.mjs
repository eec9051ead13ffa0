import { createRuntime } from 'mcporter';
import { http, objectOf, runTask, server } from './task.mjs';

const command = http
  ? { kind: 'http', url: new URL(http.url), headers: http.headers }
  : { kind: 'stdio', command: server.command, args: server.args, cwd: process.cwd() };
const definition = { name: 'claude-code', command, ...(server && { env: server.env }) };
const runtime = await createRuntime({ servers: [definition] });
await runtime.listTools('claude-code');
await runTask(async (tool, args) => objectOf(await runtime.callTool('claude-code', tool, { args })));
await runtime.close();
