// Starts a session over MCP and polls it until it is done, with nothing but Node.
//
//   node examples/poll.mjs "Add a test for the parser" path/to/project [command to start the server]
//
// It uses your own Claude Code login. When Claude asks for permission, answer y or n.
import { spawn } from 'node:child_process';
import readline from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [prompt = 'Say hello.', cwd = process.cwd(), command = 'claude-code-mcp', ...flags] = process.argv.slice(2);

const server = spawn(command, flags, { stdio: ['pipe', 'pipe', 'inherit'] });
const typed = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const answers = new Map();
readline.createInterface({ input: server.stdout }).on('line', (line) => {
  const { id, result, error } = JSON.parse(line);
  const { resolve, reject } = answers.get(id) ?? {};
  if (error) reject?.(new Error(error.message));
  else resolve?.(result);
});

const client = { name: 'poll', version: '1.0.0' };
await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: client });
send({ method: 'notifications/initialized' });

const { sessionId, error } = await call('claude_code', { prompt, cwd });
if (error) throw new Error(error);
let cursor;
for (;;) {
  const answer = await call('claude_code_check', {
    action: 'poll',
    sessionId,
    ...(cursor !== undefined && { cursor }),
  });
  for (const { type, data } of answer.events ?? []) if (type === 'output' && data.text) console.log(data.text);
  for (const { requestId, toolName, input } of answer.actions ?? []) {
    process.stderr.write(`Claude wants to use ${toolName}: ${JSON.stringify(input)}\nAllow? [y/n] `);
    const { value = 'n' } = await typed.next();
    const decision = value.trim() === 'y' ? 'allow' : 'deny';
    await call('claude_code_check', { action: 'respond_permission', sessionId, requestId, decision });
  }
  if (answer.result) {
    console.log(`${answer.status}: ${answer.result.result}`);
    process.exitCode = answer.result.isError ? 1 : 0;
    break;
  }
  if (answer.isError) throw new Error(answer.error);
  cursor = answer.nextCursor;
  await sleep(answer.pollInterval ?? 1000);
}
typed.return();
process.stdin.destroy();
server.stdin.end(); // Ends the session, too.

async function call(name, args) {
  return (await request('tools/call', { name, arguments: args })).structuredContent;
}

function request(method, params) {
  const id = answers.size + 1;
  return new Promise((resolve, reject) => {
    answers.set(id, { resolve, reject });
    send({ id, method, params });
  });
}

function send(message) {
  server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
