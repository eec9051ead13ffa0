// Two MCP clients of one engine, each with a server of its own: they share its limits, not their sessions.
//
//   npm run build
//   node examples/two-clients.mjs path/to/project
//
// It uses your own Claude Code login, and needs @modelcontextprotocol/client for the clients.
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { createEngine, createServer } from 'claude-code-mcp';

const [cwd = process.cwd()] = process.argv.slice(2);
const engine = createEngine({ maxSessions: 2 }, { cwd });

try {
  const [ada, grace] = await Promise.all([connect('ada'), connect('grace')]);
  const answers = await Promise.all([
    call(ada, 'claude_code', { prompt: 'Name one thing this project does well.', waitMs: 120_000 }),
    call(grace, 'claude_code', { prompt: 'Name one thing this project could do better.', waitMs: 120_000 }),
  ]);
  for (const { result, error } of answers) console.log(result?.result ?? error);
  // What one of them started does not exist for the other.
  console.log(await call(grace, 'claude_code_check', { action: 'poll', sessionId: answers[0].sessionId }));
} finally {
  await engine.close();
}

async function connect(name) {
  const [here, there] = InMemoryTransport.createLinkedPair();
  createServer(engine).connect(there);
  const client = new Client({ name, version: '1.0.0' });
  await client.connect(here);
  return client;
}

async function call(client, name, args) {
  return (await client.callTool({ name, arguments: args })).structuredContent;
}
