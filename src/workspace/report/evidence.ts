import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { headLog, shortBranch, type Checkout } from '../git/checkout.ts';
import type { GitHost } from '../git/git-process.ts';
import {
  changedFiles,
  compareSnapshots,
  filesAndPatch,
  readPatch,
  sum,
  type Comparison,
  type FileChange,
} from './compare.ts';
import { gitIn, readPlainFile, zeroSeparated } from '../git/git.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { takeSnapshot, type Snapshot } from './snapshot.ts';
import { editedFiles, editedPath, MAX_DIFF_BYTES, reportedPatch } from './work-report.ts';
import type { Commit, Evidence, SessionSums, ToolCall } from './work-report.ts';

export interface CollectedEvidence extends Evidence {
  readonly session: SessionSums;
  /** The baseline of the next turn; undefined without git. */
  readonly now: Snapshot | undefined;
}

interface Calls {
  readonly calls: readonly ToolCall[];
  /** Another session worked in the same checkout. */
  readonly shared: boolean;
  /** Those of the whole session. */
  readonly all: readonly ToolCall[];
}

interface Baselines {
  /** Where the session began. */
  readonly begun: Snapshot;
  /** Where the turn began. */
  readonly since: Snapshot;
}

/** Where there is no git: what the file tools reported. */
export function evidenceOfCalls(
  cwd: string,
  calls: readonly ToolCall[],
  shared: boolean,
  all: readonly ToolCall[],
): CollectedEvidence {
  const root = path.resolve(cwd);
  const diff = reportedPatch(calls, root);
  const session = sumsOf(editedFiles(all), 0);
  return { calls, changes: undefined, lastWrite: 0, shared, root, diff, session, now: undefined };
}

/** What git saw change since the baselines. The processes that do not need each other run at the same time. */
export async function collectEvidence(
  seal: Seal,
  cwd: string,
  { begun, since }: Baselines,
  { calls, shared, all }: Calls,
): Promise<CollectedEvidence> {
  const { host, checkout } = seal;
  const now = await takeSnapshot(seal);
  const commitsSince = (before: Snapshot): Promise<Commit[]> => commitsBetween(host, checkout, before, now);
  const isFirst = isSame(begun, since);
  const [turn, whole, commits, allCommits] = await Promise.all([
    compareSnapshots(seal, since, now).then((comparison) => workIn(comparison, calls, 'with diff')),
    isFirst ? undefined : compareSnapshots(seal, begun, now).then((comparison) => workIn(comparison, all)),
    commitsSince(since),
    isFirst ? undefined : commitsSince(begun),
  ]);
  return {
    calls,
    changes: turn.changes,
    lastWrite: await lastWriteOf(checkout.workTree, turn.changes),
    shared,
    root: checkout.workTree,
    diff: turn.diff,
    git: {
      branch: now.branch === undefined ? null : shortBranch(now.branch),
      head: now.head ?? null,
      commits,
      uncommitted: { count: now.changed.length, paths: now.changed.map((changed) => changed.path) },
    },
    session: sumsOf((whole ?? turn).changes, (allCommits ?? commits).length),
    now,
  };

  async function workIn(
    comparison: Comparison,
    made: readonly ToolCall[],
    detail?: 'with diff',
  ): Promise<{ changes: FileChange[]; diff?: string | undefined }> {
    const isFew = detail !== undefined && comparison.count <= FEW_FILES;
    const { files: seen, patch } = isFew
      ? await filesAndPatch(seal, comparison)
      : { files: await changedFiles(seal, comparison), patch: undefined };
    const unseen = await unseenEdits(seal, cwd, seen, made);
    const changes = [...seen, ...unseen.map(({ change }) => change)];
    if (detail === undefined || !mayBeSmall(comparison, changes)) return { changes };
    const edits = new Set(unseen.map(({ edited }) => edited));
    const reported = reportedPatch(made.filter((call) => edits.has(editedPath(call) ?? '')));
    const seenPatch = patch ?? (await readPatch(seal, comparison)).toString('utf8');
    return { changes, diff: `${seenPatch}${reported}` };
  }
}

/** So many files are compared and shown in one step, which is wasted if they are large. */
const FEW_FILES = 3;

/** Whether two looks saw the same, and the same commits. */
function isSame(one: Snapshot, other: Snapshot): boolean {
  if (one === other) return true;
  return (
    one.head === other.head &&
    one.tree === other.tree &&
    one.logged === other.logged &&
    JSON.stringify(one.changed) === JSON.stringify(other.changed)
  );
}

/** A diff that cannot fit is not asked for. */
function mayBeSmall({ unread }: Comparison, changes: readonly FileChange[]): boolean {
  const { insertions, deletions } = sumsOf(changes, 0);
  const names = sum(changes.map((change) => change.path.length));
  return changes.length > 0 && unread.length === 0 && insertions + deletions + 2 * names < MAX_DIFF_BYTES;
}

function sumsOf(changes: readonly FileChange[], commits: number): SessionSums {
  return {
    filesChanged: changes.length,
    insertions: sum(changes.map((change) => change.insertions)),
    deletions: sum(changes.map((change) => change.deletions)),
    commits,
  };
}

/** More files than a person or a model writes; looking at each of them must not delay an answer. */
const MAX_FILES = 1_000;

/** When the latest of these files was written, in milliseconds. The time of a change cannot be set back. */
async function lastWriteOf(workTree: string, changes: readonly FileChange[]): Promise<number> {
  const times = changes.slice(0, MAX_FILES).map(async (change) => {
    const stats = await lstat(path.resolve(workTree, change.path)).catch(() => undefined);
    return stats?.ctimeMs ?? 0;
  });
  return Math.max(0, ...(await Promise.all(times)));
}

interface UnseenEdit {
  readonly change: FileChange;
  /** As the tool named the file. */
  readonly edited: string;
}

/** Edits of files that git does not track: outside the checkout, or ignored. */
async function unseenEdits(
  seal: Seal,
  cwd: string,
  seen: readonly FileChange[],
  calls: readonly ToolCall[],
): Promise<UnseenEdit[]> {
  const { workTree } = seal.checkout;
  const known = new Set(seen.flatMap((change) => [change.path, change.oldPath]));
  const edits = editedFiles(calls).map((edit) => ({
    edit,
    inside: path.relative(workTree, path.resolve(cwd, edit.path)).split(path.sep).join('/'),
  }));
  const isOutside = (inside: string): boolean => inside.startsWith('../') || path.isAbsolute(inside);
  const maybeIgnored = edits.filter(({ inside }) => !isOutside(inside) && !known.has(inside));
  const ignored =
    maybeIgnored.length === 0
      ? new Set<string>()
      : await ignoredAmong(
          seal,
          maybeIgnored.map(({ inside }) => inside),
        );
  return edits
    .filter(({ inside }) => isOutside(inside) || ignored.has(inside))
    .map(({ edit, inside }) => ({
      change: isOutside(inside) ? edit : { ...edit, path: inside },
      edited: edit.path,
    }));
}

async function ignoredAmong(seal: Seal, names: readonly string[]): Promise<Set<string>> {
  const index = path.join(seal.checkout.gitDir, 'index');
  // check-ignore does not support literal paths; `./` keeps a name from being read as magic.
  const input = names.map((name) => `./${name}\0`).join('');
  const text = await sealed(seal, { objects: 'scratch', index, files: true }, (git) =>
    git(['--no-literal-pathspecs', 'check-ignore', '-z', '--stdin'], { input, codes: [0, 1] }),
  );
  return new Set(zeroSeparated(text).map((name) => name.replace(/^\.\//, '')));
}

/*
 * Which commits were made here. What HEAD has now and did not have before may also have been pulled or switched to, and
 * a commit may be on a branch that HEAD has left again: the log of HEAD tells, which git only ever appends to.
 */

/** What git writes for an action that makes a commit: `commit (amend): subject`, `rebase (pick): subject`. */
const MAKES_COMMIT =
  /^(commit|cherry-pick|revert|am)\b.*?: |\((pick|squash|fixup|reword|edit|continue)\): |: Merge made by /;

const MAX_COMMITS = 1_000;

/** The commits that were made between two looks and that HEAD or a branch still has, newest first. */
async function commitsBetween(host: GitHost, { gitDir }: Checkout, before: Snapshot, now: Snapshot): Promise<Commit[]> {
  const isLogged = before.logged !== undefined && now.logged !== undefined && now.logged >= before.logged;
  const made = isLogged ? await loggedCommits(gitDir, before.logged ?? 0) : undefined;
  if (made ? made.size === 0 : now.head === before.head) return [];
  const exclude = before.head === undefined ? [] : [`^${before.head}`];
  const list = async (...from: string[]): Promise<Commit[]> => {
    // A commit that the session began with may be gone by now.
    const args = [
      'rev-list',
      `--max-count=${String(MAX_COMMITS)}`,
      '--format=%s',
      '--encoding=UTF-8',
      ...from,
      ...exclude,
    ];
    return parseCommits(await gitIn(host, gitDir)(args, { codes: [0, 128] }));
  };
  const onHead = now.head === undefined || now.head === before.head ? [] : await list(now.head);
  if (!made) return onHead;
  const found = onHead.filter(({ sha }) => made.has(sha));
  if (found.length === made.size) return found;
  const elsewhere = (await list('--branches', ...onHead.slice(0, 1).map(({ sha }) => `^${sha}`))).filter(({ sha }) =>
    made.has(sha),
  );
  return [...found, ...elsewhere];
}

async function loggedCommits(gitDir: string, from: number): Promise<Set<string>> {
  const made = new Set<string>();
  for (const line of (await readPlainFile(headLog(gitDir), from)).split('\n')) {
    const [, sha, action = ''] = /^[0-9a-f]+ ([0-9a-f]+) [^\t]*\t(.*)$/.exec(line) ?? [];
    if (sha !== undefined && MAKES_COMMIT.test(action)) made.add(sha);
  }
  return made;
}

function parseCommits(text: string): Commit[] {
  return [...text.matchAll(/^commit ([0-9a-f]+)\n(.*)$/gm)].map(([, sha = '', subject = '']) => ({ sha, subject }));
}
