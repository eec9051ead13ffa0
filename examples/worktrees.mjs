// Three sessions try the same task side by side, each in a git worktree of its own; the best one is taken.
//
//   npm run build
//   node examples/worktrees.mjs "Make the parser faster" path/to/repository
//
// It uses your own Claude Code login. Nothing is changed in the repository's checkout until one of them is applied.
import { createEngine } from 'claude-code-mcp';

const [task = 'Improve the README.', cwd = process.cwd()] = process.argv.slice(2);
const WAYS = ['with as few changes as possible', 'in the most readable way', 'in the fastest way'];

const engine = createEngine({ approvals: 'caller', maxSessions: WAYS.length });
try {
  const sessions = await Promise.all(WAYS.map(tryIt));
  for (const session of sessions) {
    const { filesChanged, insertions, deletions, lastCheck } = session.work ?? {};
    const checked = lastCheck ? `${lastCheck.command} exited with ${lastCheck.exitCode}` : 'nothing checked';
    console.log(`${session.title}: ${filesChanged} file(s), +${insertions} -${deletions}, ${checked}`);
  }
  const [best, ...others] = sessions.toSorted((a, b) => rank(a) - rank(b));
  const { diff } = await engine.execute({ kind: 'diff', sessionId: best.id, maxBytes: 4_000, offset: 0 });
  console.log(diff);
  const { outcome } = await engine.execute({ kind: 'apply', sessionId: best.id, mode: 'squash', message: task });
  console.log(`${best.title}: ${outcome}`);
  // What nobody took stays on its branch.
  for (const { id } of [best, ...others]) await engine.execute({ kind: 'discard', sessionId: id, force: true });
} finally {
  await engine.close();
}

async function tryIt(way) {
  const options = { cwd, permissionMode: 'acceptEdits', workspace: { type: 'worktree' } };
  const { sessionId } = await engine.execute({ kind: 'start', prompt: `${task}, ${way}`, options });
  let session = await engine.untilAttention(sessionId);
  while (session.requests.length > 0) {
    // Edits pass; a program that nobody watches allows nothing else.
    for (const { id } of session.requests)
      await engine.execute({ kind: 'respond', sessionId, requestId: id, answer: { decision: 'deny' } });
    session = await engine.untilAttention(sessionId);
  }
  return session.record;
}

/** A failed check last; of the others the smallest change first. */
function rank({ work = {} }) {
  const { lastCheck, insertions = 0, deletions = 0, filesChanged = 0 } = work;
  if (filesChanged === 0 || (lastCheck && lastCheck.exitCode !== 0)) return Infinity;
  return insertions + deletions;
}
