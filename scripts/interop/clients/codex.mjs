// The app server speaks JSON-RPC without a model of its own: thread/start, then mcpServer/tool/call.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { answerForm } from './forms.mjs';
import { objectOf, report, runTask, server } from './task.mjs';

const home = `${process.env.HOME}/.codex`;
mkdirSync(home, { recursive: true });
if (server) {
  const toml = (value) => JSON.stringify(value);
  const env = Object.entries(server.env).map(([name, value]) => `${toml(name)} = ${toml(value)}`);
  writeFileSync(
    `${home}/config.toml`,
    `[mcp_servers.claude-code]\ncommand = ${toml(server.command)}\nargs = ${toml(server.args)}\ntool_timeout_sec = 60\nenv = { ${env.join(', ')} }\n`,
  );
}
const codex = spawn('node_modules/.bin/codex', ['app-server'], {
  stdio: ['pipe', 'pipe', 'inherit'],
  env: { ...process.env, CODEX_HOME: home },
});
const waiting = new Map();
createInterface({ input: codex.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method === 'mcpServer/elicitation/request') return answer(message);
  waiting.get(message.id)?.(message);
});
let nextId = 1;
function request(method, params) {
  const id = nextId++;
  codex.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
  return new Promise((resolve, reject) =>
    waiting.set(id, (message) =>
      message.error ? reject(new Error(JSON.stringify(message.error))) : resolve(message.result),
    ),
  );
}
function answer({ id, params }) {
  codex.stdin.write(`${JSON.stringify({ id, result: answerForm(params) })}\n`);
}
try {
  await request('initialize', { clientInfo: { name: 'interop', version: '1.0.0' }, capabilities: null });
  codex.stdin.write(`${JSON.stringify({ method: 'initialized' })}\n`);
  const { thread } = await request('thread/start', { cwd: process.cwd() });
  const threadId = thread.id;
  await runTask(async (tool, args) => {
    const call = { threadId, server: 'claude-code', tool, arguments: args };
    return objectOf(await request('mcpServer/tool/call', call));
  }, true);
} catch (error) {
  report({ status: 'failed', error: String(error) });
} finally {
  codex.stdin.end();
  codex.kill();
}
