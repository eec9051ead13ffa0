import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';
import type { PinnedSettings, WorktreeRecord } from '../../schema/worktree-record.ts';
import { checkoutOf, readHead, shortBranch, isAncestor } from '../git/checkout.ts';
import { copyIndex, hiddenFiles, readStatus, revealFiles, type StatusEntry } from '../git/status.ts';
import { gitWithoutHooks, zeroSeparated, gitIn, type Git } from '../git/git.ts';
import { newFilters } from '../git/pinned-settings.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { checkpoint, checkoutOfRecord, sealOf, type WorktreeHost } from './worktree-records.ts';

/** The work as a commit that nothing refers to yet, or the branch's tip if all of it is committed. */
export interface WorkCommit {
  readonly commit: string;
  /** Whether there was anything to commit. */
  readonly isNew: boolean;
  /** Moves the branch and the index there. */
  readonly take: () => Promise<void>;
}

/** Commits uncommitted work in the worktree to its branch. Returns the branch's tip. */
export function commitWork(host: WorktreeHost, record: WorktreeRecord, message: string): Promise<string> {
  return withWorkCommit(host, record, message, async ({ commit, take }) => {
    await take();
    return commit;
  });
}

/** Unless `use` takes the commit, the worktree stays as it is. */
export async function withWorkCommit<T>(
  host: WorktreeHost,
  record: WorktreeRecord,
  message: string,
  use: (work: WorkCommit) => Promise<T>,
): Promise<T> {
  const checkout = checkoutOfRecord(record);
  const tip = await requireOwnBranch(host, record);
  const index = path.join(checkout.gitDir, 'index');
  // The session controls the worktree's entry: a link in place of the index would be written through.
  const temporary = path.join(checkout.gitDir, `index.${randomUUID()}`);
  if (!(await lstat(index)).isFile()) throw new DomainError('INVALID_ARGUMENT', `${index} is not a file.`);
  try {
    await copyIndex(index, temporary, constants.COPYFILE_EXCL);
    const sealing = { head: tip, objects: 'repository', index: temporary, files: true } as const;
    const commit = await sealed(sealOf(host, record), sealing, async (git) => {
      const hidden = await hiddenFiles(git, record.path);
      if (hidden.length > 0) await revealFiles(git, hidden);
      const status = await readStatus(git, record.path);
      if (status.length === 0) return undefined;
      await requireKnownFilters(host, record, git, status);
      await stage(git, status);
      const tree = (await git(['write-tree'])).trim();
      return (await git(commitTree(tree, [tip], message), { env: identityOf(record.pinned) })).trim();
    });
    const take = async (): Promise<void> => {
      if (commit === undefined) return;
      await checkpoint(host, 'commit-index');
      // The index first: a crash after it leaves the work staged, not half undone.
      await rename(temporary, index);
      await checkpoint(host, 'commit-ref');
      const git = await gitWithoutHooks(host.git, checkout.gitDir);
      await git(['update-ref', '-m', 'commit: by claude-code-mcp', record.branch, commit, tip]);
    };
    return await use({ commit: commit ?? tip, isNew: commit !== undefined, take });
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A session can switch branches or start a rebase; only work on its own branch can be taken. */
async function requireOwnBranch(host: WorktreeHost, record: WorktreeRecord): Promise<string> {
  const { gitDir } = checkoutOfRecord(record);
  const { commit, branch } = await readHead(host.git, gitDir);
  const own = shortBranch(record.branch);
  const operation = await operationInProgress(gitDir);
  if (operation !== undefined)
    throw refusal(`A ${operation} is in progress in the worktree ${record.path}; finish or abort it there first.`);
  if (branch === record.branch && commit === undefined)
    throw refusal(
      `The branch ${own} of the worktree ${record.path} is gone; recreate it (git branch ${own} <commit>).`,
    );
  if (branch !== record.branch || commit === undefined)
    throw refusal(
      `The worktree ${record.path} is ${branch === undefined ? 'at a detached HEAD' : `on ${shortBranch(branch)}`}, not on its branch ${own}; switch back to it there (git switch ${own}).`,
    );
  const elsewhere = await checkoutOf(host.git, record.commonDir, record.branch, record.path);
  if (elsewhere)
    throw refusal(`The branch ${own} is also checked out in ${elsewhere.workTree}; switch to another one there.`);
  return commit;
}

const OPERATIONS: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'merge',
  CHERRY_PICK_HEAD: 'cherry-pick',
  REVERT_HEAD: 'revert',
  'rebase-merge': 'rebase',
  'rebase-apply': 'rebase',
  BISECT_LOG: 'bisect',
};

export async function operationInProgress(gitDir: string): Promise<string | undefined> {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    if (await lstat(path.join(gitDir, name)).catch(() => undefined)) return operation;
  }
  return undefined;
}

async function requireKnownFilters(
  host: WorktreeHost,
  record: WorktreeRecord,
  git: Git,
  status: readonly StatusEntry[],
): Promise<void> {
  const unknown = await newFilters(host.git, checkoutOfRecord(record), record.pinned);
  if (unknown.size === 0) return;
  const input = status.map((entry) => `${entry.path}\0`).join('');
  const fields = zeroSeparated(await git(['check-attr', '-z', '--stdin', 'filter'], { input }));
  const used = fields.filter((value, index) => index % 3 === 2 && unknown.has(value));
  if (used.length === 0) return;
  throw refusal(
    `The git filter ${[...new Set(used)].join(', ')} was added or changed after the session started, or runs a file from the repository, and files would be committed through it. Commit them in the worktree yourself, or remove the filter.`,
    'PERMISSION_DENIED',
  );
}

async function stage(git: Git, status: readonly StatusEntry[]): Promise<void> {
  const unmerged = status.filter(({ isUnmerged }) => isUnmerged).map((entry) => entry.path);
  if (unmerged.length > 0) throw refusal(`Unresolved conflicts in the worktree: ${nameSome(unmerged)}.`);
  // A directory with its own repository is not part of this one's content.
  const paths = status.map((entry) => entry.path).filter((name) => !name.endsWith('/'));
  await git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], {
    input: paths.map((name) => `${name}\0`).join(''),
  });
}

export function commitTree(tree: string, parents: readonly string[], message: string): string[] {
  return ['commit-tree', '--no-gpg-sign', tree, ...parents.flatMap((parent) => ['-p', parent]), '-m', message];
}

/** The user's name from the configuration; a commit needs one even if there is none. */
export function identityOf({ config }: PinnedSettings): Record<string, string> {
  const settings = new Map(config);
  const name = settings.get('user.name') ?? 'claude-code-mcp';
  const email = settings.get('user.email') ?? 'claude-code-mcp@localhost';
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

export function refusal(why: string, code: 'INVALID_ARGUMENT' | 'PERMISSION_DENIED' = 'INVALID_ARGUMENT'): DomainError {
  return new DomainError(code, `${why} Nothing was changed.`);
}

export function nameSome(names: readonly string[]): string {
  const shown = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}

export interface Merge {
  readonly ours: string;
  readonly theirs: string;
  /** What was taken from theirs earlier, perhaps squashed, so that history does not show it. */
  readonly taken: string;
}

/** Deterministic commits: a repeated attempt leaves nothing new behind. */
const ANONYMOUS = {
  GIT_AUTHOR_NAME: 'x',
  GIT_AUTHOR_EMAIL: 'x',
  GIT_AUTHOR_DATE: '@0 +0000',
  GIT_COMMITTER_NAME: 'x',
  GIT_COMMITTER_EMAIL: 'x',
  GIT_COMMITTER_DATE: '@0 +0000',
};

/** A three-way merge without a working tree. The sealed git does not know the repository's merge drivers. */
export async function mergeTrees(
  seal: Seal,
  { ours, theirs, taken }: Merge,
): Promise<{ readonly tree: string } | { readonly conflicts: readonly string[] }> {
  const base = await mergeBase(seal, { ours, theirs, taken });
  return sealed(seal, { objects: 'repository', files: true }, async (git) => {
    // merge-tree accepts an explicit base only since 2.40: three commits with exactly this history work too.
    const commit = async (of: string, parents: string[]): Promise<string> =>
      (await git(commitTree(`${of}^{tree}`, parents, 'x'), { env: ANONYMOUS })).trim();
    const root = await commit(base, []);
    const [left, right] = [await commit(ours, [root]), await commit(theirs, [root])];
    return merge(git, left, right);
  });
}

async function merge(git: Git, left: string, right: string): Promise<{ tree: string } | { conflicts: string[] }> {
  const args = ['merge-tree', '--write-tree', '-z', '--name-only', '--no-messages', left, right];
  const { code, stdout } = await git.bytes(args, { codes: [0, 1] });
  const [tree = '', ...conflicts] = zeroSeparated(stdout.toString());
  return code === 0 ? { tree } : { conflicts: [...new Set(conflicts.filter((name) => name !== ''))] };
}

async function mergeBase({ host, checkout: { commonDir } }: Seal, { ours, theirs, taken }: Merge): Promise<string> {
  const natural = (await gitIn(host, commonDir)(['merge-base', ours, theirs], { codes: [0, 1] })).trim();
  return natural === '' || (await isAncestor(host, commonDir, natural, taken)) ? taken : natural;
}
