// Drives Claude Code from your own program: no MCP client, no second server process.
//
//   npm run build
//   node examples/embed.mjs "Add a test for the parser" path/to/project
//
// It uses your Claude Code login. When Claude asks for permission, answer y or n.
import readline from 'node:readline/promises';
import { createEngine, untilAttention } from 'claude-code-mcp';

const [prompt = 'Say hello.', cwd = process.cwd()] = process.argv.slice(2);
const terminal = readline.createInterface({ input: process.stdin, output: process.stderr });

// The same settings as the command's; those left out come from the environment or the defaults.
const engine = createEngine({ approvals: 'caller', maxSessions: 1 });
try {
  const session = await engine.start({ prompt, options: { cwd, permissionMode: 'default' } });
  while (!session.atRest) {
    await untilAttention(session);
    for (const request of session.requests) await decide(session, request);
  }
  console.log(session.result?.text);
  process.exitCode = session.result?.isError ? 1 : 0;
} finally {
  terminal.close();
  // Ends the session, Claude Code and whatever it started.
  await engine.close();
}

async function decide(session, { id, ask }) {
  const answer = await terminal.question(
    `Claude wants to use ${ask.toolName}: ${JSON.stringify(ask.input)}\nAllow? [y/n] `,
  );
  engine.respond(session.id, id, { decision: answer.trim().toLowerCase() === 'y' ? 'allow' : 'deny' });
}
