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
  const sessions = await tryAll();
  for (const { title, turn, work = {} } of sessions) {
    if (turn?.isError) console.error(`${title}: ${turn.text}`);
    const { filesChanged, insertions, deletions, lastCheck, attention = [] } = work;
    const checked = lastCheck ? `${lastCheck.command} exited with ${lastCheck.exitCode}` : 'nothing checked';
    console.log(`${title}: files changed: ${filesChanged} (+${insertions} -${deletions}), ${checked}`);
    for (const line of attention) console.log(`  ! ${line}`);
  }
  const [{ id: sessionId, title }] = sessions.toSorted((a, b) => rank(a) - rank(b));
  const { diff } = await engine.execute({ kind: 'diff', sessionId, maxBytes: 4_000, offset: 0 });
  console.log(diff);
  // What nobody takes stays on its branch.
  const apply = { kind: 'apply', sessionId, mode: 'squash', message: task, discardOthers: true };
  const { outcome } = await engine.execute(apply);
  console.log(`${title}: ${outcome}`);
  await engine.execute({ kind: 'discard', sessionId, force: true });
  process.exitCode = outcome === 'applied' ? 0 : 1;
} finally {
  await engine.close();
}

/** Starts all of them from the same commit, each in its own worktree, and sees them through. */
async function tryAll() {
  const attempts = WAYS.map((way) => ({ prompt: `${task.replace(/\.$/, '')}, ${way}` }));
  const options = { cwd, permissionMode: 'acceptEdits' };
  const started = await engine.execute({ kind: 'start', prompt: task, options, attempts });
  return Promise.all(started.attempts.map(({ sessionId }) => seeThrough(sessionId)));
}

async function seeThrough(sessionId) {
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
