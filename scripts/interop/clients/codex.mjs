// The app server speaks JSON-RPC without a model of its own: thread/start, then mcpServer/tool/call.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { objectOf, report, runTask, server } from './task.mjs';

const home = `${process.env.HOME}/.codex`;
mkdirSync(home, { recursive: true });
const toml = (value) => JSON.stringify(value);
const env = Object.entries(server.env).map(([name, value]) => `${toml(name)} = ${toml(value)}`);
writeFileSync(
  `${home}/config.toml`,
  `[mcp_servers.claude-code]\ncommand = ${toml(server.command)}\nargs = ${toml(server.args)}\ntool_timeout_sec = 60\nenv = { ${env.join(', ')} }\n`,
);
const codex = spawn('node_modules/.bin/codex', ['app-server'], {
  stdio: ['pipe', 'pipe', 'inherit'],
  env: { ...process.env, CODEX_HOME: home },
});
const waiting = new Map();
const forms = [];
createInterface({ input: codex.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method !== undefined && message.id !== undefined) return answerForm(message);
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
function answerForm({ id, method, params }) {
  forms.push({ method, params });
  const properties = params?.requestedSchema?.properties ?? {};
  const content = Object.fromEntries(Object.entries(properties).flatMap(([name, schema]) => first(schema, name)));
  codex.stdin.write(`${JSON.stringify({ id, result: { action: 'accept', content } })}\n`);
}
function first(schema, name) {
  const choice = schema.enum?.[0] ?? schema.oneOf?.[0]?.const ?? schema.default;
  return choice === undefined ? [] : [[name, choice]];
}
try {
  await request('initialize', { clientInfo: { name: 'interop', version: '1.0.0' }, capabilities: null });
  codex.stdin.write(`${JSON.stringify({ method: 'initialized' })}\n`);
  const { thread } = await request('thread/start', { cwd: process.cwd() });
  await runTask(async (tool, args) =>
    objectOf(
      await request('mcpServer/tool/call', { threadId: thread.id, server: 'claude-code', tool, arguments: args }),
    ),
  );
  if (forms.length > 0) process.stderr.write(`forms: ${JSON.stringify(forms).slice(0, 2000)}\n`);
} catch (error) {
  report({ status: 'failed', error: String(error) });
} finally {
  codex.stdin.end();
  codex.kill();
}
