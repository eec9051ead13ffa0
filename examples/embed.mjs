// Drives Claude Code from your own program: no MCP client, no second server process.
//
//   npm run build
//   node examples/embed.mjs "Add a test for the parser" path/to/project
//
// It uses your Claude Code login. When Claude asks for permission, answer y or n.
import readline from 'node:readline/promises';
import { createEngine } from 'claude-code-mcp';

const [prompt = 'Say hello.', cwd = process.cwd()] = process.argv.slice(2);
const terminal = readline.createInterface({ input: process.stdin, output: process.stderr });

// The same settings as the command's; those left out come from the environment or the defaults.
const engine = createEngine({ approvals: 'caller', maxSessions: 1 });
try {
  const options = { cwd, permissionMode: 'default' };
  const { sessionId } = await engine.execute({ kind: 'start', prompt, options });
  let session = await engine.untilAttention(sessionId);
  while (session.requests.length > 0) {
    for (const request of session.requests) await decide(sessionId, request);
    session = await engine.untilAttention(sessionId);
  }
  const { turn } = session.record;
  console.log(turn?.text);
  process.exitCode = turn?.isError ? 1 : 0;
} finally {
  terminal.close();
  // Ends the session, Claude Code and whatever it started.
  await engine.close();
}

async function decide(sessionId, { id: requestId, ask }) {
  const typed = await terminal.question(
    `Claude wants to use ${ask.toolName}: ${JSON.stringify(ask.input)}\nAllow? [y/n] `,
  );
  const answer = { decision: typed.trim().toLowerCase() === 'y' ? 'allow' : 'deny' };
  await engine.execute({ kind: 'respond', sessionId, requestId, answer });
}
