import { createRuntime } from 'mcporter';
import { objectOf, runTask, server } from './task.mjs';

const definition = {
  name: 'claude-code',
  command: { kind: 'stdio', command: server.command, args: server.args, cwd: process.cwd() },
  env: server.env,
};
const runtime = await createRuntime({ servers: [definition] });
await runtime.listTools('claude-code');
await runTask(async (tool, args) => objectOf(await runtime.callTool('claude-code', tool, { args })));
await runtime.close();
