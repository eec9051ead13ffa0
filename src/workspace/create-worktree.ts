import { lstat, mkdir, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../errors/errors.ts';
import type { WorktreeRecord } from '../schema/worktree-record.ts';
import { checkoutOf, findCheckout, readHead, resolveCommit, shortBranch, type FoundCheckout } from './checkout.ts';
import { gitAt, gitIn } from './git.ts';
import { checkGitVersion } from './git-process.ts';
import { pinSettings, type PinOptions } from './pinned-settings.ts';
import { sealed } from './sealed.ts';
import { checkpoint, loadRecord, saveRecord, sealOf, type WorktreeHost } from './worktree-records.ts';
import { shortId, worktreePath } from './worktree-path.ts';

export interface WorktreeRequest extends PinOptions {
  readonly sessionId: string;
  readonly cwd: string;
  /** Branch, tag or commit; what is checked out in `cwd` unless told. */
  readonly base?: string | undefined;
  readonly branch?: string | undefined;
  /** A worktree to go on from: its branch's last commit, counted from its base. */
  readonly of?: WorktreeRecord;
}

export interface CreatedWorktree {
  readonly record: WorktreeRecord;
  /** Where the session works: the place of `cwd` in the worktree. */
  readonly cwd: string;
  /** What is different from the checkout, in words. */
  readonly notes: readonly string[];
}

/** Makes the worktree step by step and cleans nothing up: what a step leaves behind, `recoverWorktree` understands. */
export async function createWorktree(host: WorktreeHost, request: WorktreeRequest): Promise<CreatedWorktree> {
  const { git, worktreesDir } = host;
  const found = await findCheckout(git, request.cwd);
  if (!found)
    throw new DomainError('INVALID_ARGUMENT', `A worktree needs a git repository, and ${request.cwd} is in none.`);
  await checkGitVersion(git, found.workTree);
  const { of } = request;
  const base = of?.base ?? (await resolveBase(host, found, request.base));
  const commit = of ? await tipOf(host, of) : base.commit;
  const branch = await chooseBranch(host, found.commonDir, request);
  await mkdir(worktreesDir, { recursive: true, mode: 0o700 });
  const id = await freeId(host, found.commonDir, shortId(request.sessionId));
  const place = { worktreesDir: await realpath(worktreesDir), commonDir: found.commonDir, id };

  let record = await saveRecord(host, {
    version: 1,
    id,
    sessionId: request.sessionId,
    createdAt: new Date().toISOString(),
    origin: found.workTree,
    commonDir: found.commonDir,
    path: worktreePath(place),
    prefix: found.prefix,
    branch,
    base,
    begun: of?.begun ?? base.commit,
    state: 'creating',
    pinned: of?.pinned ?? (await pinSettings(git, found, request)),
  });
  await checkpoint(host, 'add');
  await mkdir(path.dirname(record.path), { recursive: true, mode: 0o700 });
  const add = ['worktree', 'add', '--quiet', '--no-checkout', '--no-track', '-b', shortBranch(branch)];
  const { oneAtATime = (work) => work() } = host;
  await oneAtATime(() => gitIn(git, found.gitDir)([...add, '--', record.path, commit]));
  await checkpoint(host, 'record-entry');
  const entry = (await gitAt(git, record.path)(['rev-parse', '--absolute-git-dir'])).replace(/\n$/, '');
  record = await saveRecord(host, { ...record, entry: path.basename(entry) });
  await checkpoint(host, 'check-out');
  await checkOutFiles(host, record, commit);
  const cwd = path.join(record.path, record.prefix);
  await mkdir(cwd, { recursive: true });
  await checkpoint(host, 'ready');
  record = await saveRecord(host, { ...record, state: 'ready' });
  return { record, cwd, notes: await notesOn(record) };
}

async function tipOf({ git }: WorktreeHost, { commonDir, branch }: WorktreeRecord): Promise<string> {
  const tip = await resolveCommit(git, commonDir, branch);
  if (tip !== undefined) return tip;
  throw new DomainError('INVALID_ARGUMENT', `The branch ${shortBranch(branch)} that the fork begins at is gone.`);
}

async function checkOutFiles(host: WorktreeHost, record: WorktreeRecord, commit: string): Promise<void> {
  const seal = sealOf(host, record);
  const index = path.join(seal.checkout.gitDir, 'index');
  await sealed(seal, { head: commit, objects: 'repository', index, files: true }, (git) =>
    git(['-c', 'checkout.workers=0', 'read-tree', '--reset', '-u', commit], { timeoutMs: 600_000 }),
  );
}

async function resolveBase(
  { git }: WorktreeHost,
  { gitDir, workTree }: FoundCheckout,
  name: string | undefined,
): Promise<WorktreeRecord['base']> {
  if (name === undefined) {
    const { commit, branch } = await readHead(git, gitDir);
    if (commit === undefined)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `The repository ${workTree} has no commit yet, and a worktree begins at one. Commit first, or work without a worktree.`,
      );
    return { commit, ...(branch !== undefined && { ref: branch }) };
  }
  const ref = `refs/heads/${shortBranch(name)}`;
  const onBranch = await resolveCommit(git, gitDir, ref);
  if (onBranch !== undefined) return { commit: onBranch, ref };
  const commit = await resolveCommit(git, gitDir, name);
  if (commit !== undefined) return { commit };
  throw new DomainError('INVALID_ARGUMENT', `base ${JSON.stringify(name)} is no branch, tag or commit of ${workTree}.`);
}

async function chooseBranch(
  { git }: WorktreeHost,
  commonDir: string,
  { branch, sessionId }: WorktreeRequest,
): Promise<string> {
  const inRepository = gitIn(git, commonDir);
  const isFree = async (ref: string): Promise<boolean> => {
    const parts = ref.split('/');
    const patterns = parts.slice(2).map((_, index) => parts.slice(0, index + 3).join('/'));
    // `claude` is in the way of `claude/x`, and `claude/x` of `claude`.
    const refs = (await inRepository(['for-each-ref', '--format=%(refname)', ...patterns])).split('\n');
    const exact = refs.filter((name) => name !== '');
    return !exact.some((name) => ref === name || ref.startsWith(`${name}/`) || name.startsWith(`${ref}/`));
  };
  if (branch !== undefined) {
    const ref = `refs/heads/${shortBranch(branch)}`;
    const { code } = await inRepository.bytes(['check-ref-format', ref], { codes: [0, 1] });
    if (code !== 0 || shortBranch(branch).startsWith('-') || shortBranch(branch) === 'HEAD')
      throw new DomainError('INVALID_ARGUMENT', `${JSON.stringify(branch)} cannot be the name of a branch.`);
    if (await isFree(ref)) return ref;
    const where = await checkoutOf(git, commonDir, ref).catch(() => undefined);
    throw new DomainError(
      'INVALID_ARGUMENT',
      `The branch ${shortBranch(ref)} cannot be made: it or one in its place exists${where ? `, checked out in ${where.workTree}` : ''}. Name another one, or none.`,
    );
  }
  const id = shortId(sessionId);
  for (const separator of ['/', '-']) {
    for (let count = 1; count < 100; count++) {
      const ref = `refs/heads/claude${separator}${id}${count === 1 ? '' : `-${count}`}`;
      if (await isFree(ref)) return ref;
    }
  }
  throw new DomainError('INVALID_ARGUMENT', `Every branch name for ${id} is taken; name one with branch.`);
}

async function freeId(host: WorktreeHost, commonDir: string, wanted: string): Promise<string> {
  for (let count = 1; ; count++) {
    const id = count === 1 ? wanted : `${wanted}-${count}`;
    const place = worktreePath({ worktreesDir: host.worktreesDir, commonDir, id });
    const record = await loadRecord(host, id).catch(() => 'unreadable');
    const directory = await lstat(place).catch(() => undefined);
    if (record === undefined && directory === undefined) return id;
  }
}

async function notesOn({ path: worktree }: WorktreeRecord): Promise<string[]> {
  const read = (name: string): Promise<string> => readFile(path.join(worktree, name), 'utf8').catch(() => '');
  const [modules, attributes] = await Promise.all([read('.gitmodules'), read('.gitattributes')]);
  return [
    ...(modules === '' ? [] : ['Submodules are not checked out in the worktree (git submodule update --init).']),
    ...(/\bfilter=lfs\b/.test(attributes) ? ['Files in Git LFS are pointers in the worktree (git lfs pull).'] : []),
  ];
}
