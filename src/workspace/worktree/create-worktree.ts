import { createHash } from 'node:crypto';
import { lstat, mkdir, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';
import type { WorktreeRecord } from '../../schema/worktree-record.ts';
import { checkoutOf, findCheckout, headOf, resolveCommit, shortBranch, type FoundCheckout } from '../git/checkout.ts';
import { checkGitVersion } from '../git/git-process.ts';
import { GitError, gitIn, gitWithoutHooks, patiently, zeroSeparated, type Git } from '../git/git.ts';
import { newFilters, pinSettings, type PinOptions } from '../git/pinned-settings.ts';
import { snapshotOfTree, type Snapshot } from '../report/snapshot.ts';
import { checkOutFiles, planCheckout } from './check-out-files.ts';
import { checkpoint, reserveRecord, saveRecord, sealOf, type WorktreeHost } from './worktree-records.ts';

export interface WorktreeRequest extends PinOptions {
  readonly sessionId: string;
  readonly cwd: string;
  /** Branch, tag or commit; by default what is checked out in `cwd`. */
  readonly base?: string | undefined;
  readonly branch?: string | undefined;
  /** A worktree to continue from: its branch's last commit, with the same base. */
  readonly of?: WorktreeRecord;
}

export interface CreatedWorktree {
  readonly record: WorktreeRecord;
  /** Where the session works: the position of `cwd` in the worktree. */
  readonly cwd: string;
  /** The state when the files were written, if it is known without looking at them. */
  readonly begun: Snapshot | undefined;
  /** How it differs from the checkout, in words. */
  readonly notes: readonly string[];
}

/** Creates the worktree step by step and cleans nothing up: `recoverWorktree` handles whatever a step leaves behind. */
export async function createWorktree(host: WorktreeHost, request: WorktreeRequest): Promise<CreatedWorktree> {
  const { git, worktreesDir } = host;
  const found = await findCheckout(git, request.cwd);
  if (!found)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `A worktree requires a git repository, and ${request.cwd} is not in one.`,
    );
  const { of } = request;
  const [base, branch, pinned, hookless] = await Promise.all([
    of?.base ?? resolveBase(host, found, request.base),
    chooseBranch(host, found.commonDir, request),
    of?.pinned ?? pinSettings(git, found, request),
    gitWithoutHooks(git, found.commonDir),
    checkGitVersion(git, found.workTree),
  ]);
  const commit = of ? await tipOf(host, of) : base.commit;
  await mkdir(worktreesDir, { recursive: true, mode: 0o700 });
  const id = await takeId(host, found.commonDir, shortId(request.sessionId));
  const place = { worktreesDir: await realpath(worktreesDir), commonDir: found.commonDir, id };

  await requireShortPaths(host, { worktree: worktreePath(place), pinned, commonDir: found.commonDir, commit });
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
    pinned,
  });
  await checkpoint(host, 'add');
  await mkdir(path.dirname(record.path), { recursive: true, mode: 0o700 });
  const [entry, plan] = await bothOf(
    addWorktree(host, hookless, record, commit),
    planCheckout(sealOf(host, record, found), commit, path.join(found.gitDir, 'index')),
  );
  record = await saveRecord(host, { ...record, entry });
  await checkpoint(host, 'check-out');
  const { isVerbatim } = await checkOutFiles(sealOf(host, record), plan);
  const cwd = path.join(record.path, record.prefix);
  await mkdir(cwd, { recursive: true });
  await checkpoint(host, 'ready');
  record = await saveRecord(host, { ...record, state: 'ready' });
  const begun = isVerbatim ? snapshotOfTree(commit, commit) : undefined;
  return { record, cwd, begun, notes: await notesOn(host, record, found) };
}

/** Each is waited for even if the other fails: nothing is still running when a failed start is cleaned up. */
async function bothOf<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}

interface PathCheck extends Pick<WorktreeRecord, 'pinned' | 'commonDir'> {
  readonly worktree: string;
  readonly commit: string;
}

/** Git on Windows would stop halfway through the files. */
async function requireShortPaths(
  host: WorktreeHost,
  { worktree, pinned, commonDir, commit }: PathCheck,
): Promise<void> {
  const longPaths = pinned.config.some(([key, value]) => key === 'core.longpaths' && value === 'true');
  const room = roomBelow(worktree, host.platform ?? process.platform, longPaths);
  if (room === undefined) return;
  const names = zeroSeparated(await gitIn(host.git, commonDir)(['ls-tree', '-r', '-z', '--name-only', commit]));
  const tooLong = names.filter((name) => name.length > room);
  if (tooLong.length === 0) return;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `${String(tooLong.length)} file(s) would have paths that are too long for Windows in ${worktree}, such as ${tooLong[0] ?? ''}. Turn on long paths (git config --global core.longpaths true), or use a shorter directory for worktrees (CLAUDE_CODE_MCP_WORKTREES_DIR).`,
  );
}

/** Registers the worktree, without files. Returns the name of its entry. */
async function addWorktree(host: WorktreeHost, git: Git, record: WorktreeRecord, commit: string): Promise<string> {
  const { branch } = record;
  // Only one can create it: an existing branch belongs to someone else and stays.
  const message = 'branch: Created by claude-code-mcp';
  await patiently(() => git(['update-ref', '-m', message, branch, commit, '0'.repeat(commit.length)])).catch(
    (error: unknown) => {
      if (!(error instanceof GitError) || !error.stderr.includes('already exists')) throw error;
      throw new DomainError(
        'INVALID_ARGUMENT',
        `The branch ${shortBranch(branch)} cannot be created: it has just been created by someone else. Choose another name, or omit it.`,
      );
    },
  );
  try {
    await checkpoint(host, 'add-entry');
    const { exclusively = (_, work) => work() } = host;
    const add = ['worktree', 'add', '--quiet', '--no-checkout', '--', record.path, shortBranch(branch)];
    await exclusively(`add-${path.basename(path.dirname(record.path))}`, () => patiently(() => git(add)));
  } catch (error) {
    await git(['update-ref', '-d', branch, commit]).catch(() => undefined);
    throw error;
  }
  await checkpoint(host, 'record-entry');
  const link = await readFile(path.join(record.path, '.git'), 'utf8');
  return path.basename(link.trim());
}

async function tipOf({ git }: WorktreeHost, { commonDir, branch }: WorktreeRecord): Promise<string> {
  const tip = await resolveCommit(git, commonDir, branch);
  if (tip !== undefined) return tip;
  throw new DomainError('INVALID_ARGUMENT', `The branch ${shortBranch(branch)} that the fork starts from is gone.`);
}

async function resolveBase(
  { git }: WorktreeHost,
  checkout: FoundCheckout,
  name: string | undefined,
): Promise<WorktreeRecord['base']> {
  const { gitDir, workTree } = checkout;
  if (name === undefined) {
    const { commit, branch } = await headOf(git, checkout);
    if (commit === undefined)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `The repository ${workTree} has no commits yet, and a worktree starts from one. Commit first, or work without a worktree.`,
      );
    return { commit, ...(branch !== undefined && { ref: branch }) };
  }
  const ref = `refs/heads/${shortBranch(name)}`;
  const onBranch = await resolveCommit(git, gitDir, ref);
  if (onBranch !== undefined) return { commit: onBranch, ref };
  const commit = await resolveCommit(git, gitDir, name);
  if (commit !== undefined) return { commit };
  throw new DomainError(
    'INVALID_ARGUMENT',
    `base ${JSON.stringify(name)} is not a branch, tag or commit of ${workTree}.`,
  );
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
    // `claude` conflicts with `claude/x`, and vice versa.
    const refs = (await inRepository(['for-each-ref', '--format=%(refname)', ...patterns])).split('\n');
    const exact = refs.filter((name) => name !== '');
    return !exact.some((name) => ref === name || ref.startsWith(`${name}/`) || name.startsWith(`${ref}/`));
  };
  if (branch !== undefined) {
    const ref = `refs/heads/${shortBranch(branch)}`;
    const { code } = await inRepository.bytes(['check-ref-format', ref], { codes: [0, 1] });
    if (code !== 0 || shortBranch(branch).startsWith('-') || shortBranch(branch) === 'HEAD')
      throw new DomainError('INVALID_ARGUMENT', `${JSON.stringify(branch)} is not a valid branch name.`);
    if (await isFree(ref)) return ref;
    const where = await checkoutOf(git, commonDir, ref).catch(() => undefined);
    throw new DomainError(
      'INVALID_ARGUMENT',
      `The branch ${shortBranch(ref)} cannot be created: it or a conflicting one exists${where ? `, checked out in ${where.workTree}` : ''}. Choose another name, or omit it.`,
    );
  }
  const id = shortId(sessionId);
  // The last one, next to branches of both names, cannot be committed to in the sandbox.
  for (const prefix of ['claude/', 'claude-code/', 'claude-']) {
    for (let count = 1; count < 100; count++) {
      const ref = `refs/heads/${prefix}${id}${count === 1 ? '' : `-${count}`}`;
      if (await isFree(ref)) return ref;
    }
  }
  throw new DomainError('INVALID_ARGUMENT', `All default branch names for ${id} are taken; specify one with branch.`);
}

async function takeId(host: WorktreeHost, commonDir: string, wanted: string): Promise<string> {
  for (let count = 1; ; count++) {
    const id = count === 1 ? wanted : `${wanted}-${count}`;
    const place = worktreePath({ worktreesDir: host.worktreesDir, commonDir, id });
    if (await lstat(place).catch(() => undefined)) continue;
    if (await reserveRecord(host, id)) return id;
  }
}

async function notesOn(
  { git }: WorktreeHost,
  { path: worktree, pinned }: WorktreeRecord,
  found: FoundCheckout,
): Promise<string[]> {
  const read = (name: string): Promise<string> => readFile(path.join(worktree, name), 'utf8').catch(() => '');
  const [modules, attributes] = await Promise.all([read('.gitmodules'), read('.gitattributes')]);
  const used = new Set([...`${attributes}\n${pinned.attributes}`.matchAll(/\sfilter=(\S+)/g)].map(([, name]) => name));
  const isLfs = used.delete('lfs');
  // Those in the user's git that are not among the pinned ones.
  const leftOut = used.size === 0 ? [] : [...(await newFilters(git, found, pinned))].filter((name) => used.has(name));
  return [
    ...(modules === '' ? [] : ['Submodules are not checked out in the worktree (git submodule update --init).']),
    ...(isLfs ? ['Files in Git LFS are pointers in the worktree (git lfs pull).'] : []),
    ...leftOut.map(
      (name) => `The git filter ${name} is left out of the worktree: its files there are as they are committed.`,
    ),
  ];
}

/** Long enough to recognise a repository, short enough for Windows. */
const MAX_NAME_LENGTH = 24;
/** Without core.longpaths git on Windows cannot create a longer path. */
const WINDOWS_MAX_PATH = 260;

export interface WorktreePlace {
  readonly worktreesDir: string;
  readonly commonDir: string;
  readonly id: string;
  readonly platform?: NodeJS.Platform;
}

/** Repositories with the same name are distinguished by a digest of their location. */
export function worktreePath({ worktreesDir, commonDir, id, platform = process.platform }: WorktreePlace): string {
  const paths = platform === 'win32' ? path.win32 : path.posix;
  const last = paths.basename(commonDir);
  const name = last === '.git' ? paths.basename(paths.dirname(commonDir)) : last.replace(/\.git$/, '');
  const digest = createHash('sha256').update(commonDir).digest('hex').slice(0, 6);
  return paths.join(worktreesDir, `${plainName(name)}-${digest}`, id);
}

/** Characters that every file system accepts; the digest after it avoids Windows's reserved names. */
function plainName(name: string): string {
  const plain = name
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}._-]+/gu, '-')
    .replace(/^[.-]+/, '');
  return Array.from(plain).slice(0, MAX_NAME_LENGTH).join('') || 'repository';
}

/** The longest path below a worktree that Windows still accepts; undefined if there is no such limit. */
export function roomBelow(worktree: string, platform: NodeJS.Platform, longPaths: boolean): number | undefined {
  if (platform !== 'win32' || longPaths) return undefined;
  return WINDOWS_MAX_PATH - 1 - worktree.length - 1;
}

/** As in `claude/1f0c2d3e`. */
export function shortId(sessionId: string): string {
  const plain = sessionId.replace(/[^0-9a-z]/gi, '').toLowerCase();
  return plain.slice(0, 8) || createHash('sha256').update(sessionId).digest('hex').slice(0, 8);
}
