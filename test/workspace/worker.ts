/** Another process that works on worktrees, and may be killed at any step. Bundled by the test that starts it. */

import path from 'node:path';
import type { ApplyMode } from '../../src/schema/enums.ts';
import { worktreeLock } from '../../src/transcripts/session-lock.ts';
import { applyWork } from '../../src/workspace/worktree/apply.ts';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { discardWork } from '../../src/workspace/worktree/discard.ts';
import { exclusively, withRecord, type WorktreeHost } from '../../src/workspace/worktree/worktree-records.ts';
import { findGit } from '../../src/workspace/git/git-process.ts';

export interface Order {
  readonly worktreesDir: string;
  readonly action: 'create' | 'apply' | 'discard';
  readonly cwd: string;
  /** The session ids for `create`; otherwise the id of one worktree. */
  readonly ids: readonly string[];
  readonly mode?: ApplyMode;
  /** Killed before this step. */
  readonly killAt?: string;
}

const { worktreesDir, action, cwd, ids, mode = 'merge', killAt } = JSON.parse(process.argv[2] ?? '') as Order;
const git = await findGit(process.env);
if (!git) throw new Error('There is no git.');
const host: WorktreeHost = {
  git,
  worktreesDir,
  exclusively: exclusively(worktreeLock(worktreesDir)),
  async checkpoint(step) {
    if (step !== killAt) return;
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => undefined);
  },
};

const [id = ''] = ids;
if (action === 'create') {
  const made = await Promise.all(ids.map((sessionId) => createWorktree(host, { sessionId, cwd })));
  process.stdout.write(made.map(({ record }) => path.basename(record.path)).join(' '));
} else if (action === 'apply') await withRecord(host, id, (record) => applyWork(host, record, { mode }));
else await withRecord(host, id, (record) => discardWork(host, record, { force: true }));
