import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';
import { gitAt, gitIn, GitError, patiently, zeroSeparated, readPlainFile } from './git.ts';
import type { GitHost } from './git-process.ts';

/** A working tree and the repository it belongs to. All paths are absolute, links resolved. */
export interface Checkout {
  readonly workTree: string;
  /** Its own git directory: the repository's, or an entry below `worktrees`. */
  readonly gitDir: string;
  /** What all worktrees of the repository share. */
  readonly commonDir: string;
}

export interface FoundCheckout extends Checkout {
  /** Position of the directory in the working tree; empty at its root. */
  readonly prefix: string;
}

/** The checkout that a directory is in, found as the user's git finds it. Undefined if there is none. */
export async function findCheckout(host: GitHost, directory: string): Promise<FoundCheckout | undefined> {
  const git = gitAt(host, directory);
  const { code, stdout, stderr } = await git.bytes(
    ['rev-parse', '--path-format=absolute', '--show-toplevel', '--absolute-git-dir', '--git-common-dir'],
    { codes: [0, 128] },
  );
  if (code !== 0) {
    if (/not a git repository|must be run in a work tree/i.test(stderr)) return undefined;
    if (stderr.includes('dubious ownership'))
      throw new DomainError(
        'PERMISSION_DENIED',
        `${directory} is in a repository that belongs to another user. If you trust it: git config --global --add safe.directory ${directory}`,
      );
    throw new DomainError('INVALID_ARGUMENT', `git cannot use ${directory}: ${stderr.trim()}`);
  }
  const [top = '', gitDir = '', commonDir = '', ...others] = stdout.toString().split('\n');
  // git separates the paths by line breaks and has no other form for them.
  if (others.length !== 1)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `The path of the repository of ${JSON.stringify(directory)} contains a line break.`,
    );
  const workTree = await realpath(top);
  // core.worktree can name any directory; one without a .git is not what the user sees as a checkout.
  await lstat(path.join(workTree, '.git')).catch(() => {
    throw new DomainError('INVALID_ARGUMENT', `The repository of ${directory} names ${workTree} as its working tree.`);
  });
  const prefix = path.relative(workTree, await realpath(directory));
  if (prefix.startsWith('..') || path.isAbsolute(prefix)) return undefined;
  return { workTree, gitDir: await realpath(gitDir), commonDir: await realpath(commonDir), prefix };
}

export interface Head {
  /** Undefined before the first commit. */
  readonly commit: string | undefined;
  /** Full name of the branch; undefined when HEAD is detached. */
  readonly branch: string | undefined;
}

export async function readHead(host: GitHost, gitDir: string): Promise<Head> {
  const git = gitIn(host, gitDir);
  const [commit, branch] = await Promise.all([
    git(['rev-parse', '--quiet', '--verify', 'HEAD^{commit}'], { codes: [0, 1, 128] }),
    git(['symbolic-ref', '--quiet', 'HEAD'], { codes: [0, 1, 128] }),
  ]);
  return { commit: commit.trim() || undefined, branch: branch.trim() || undefined };
}

const OID = /^([0-9a-f]{40}|[0-9a-f]{64})\n?$/;
const BRANCH = /^ref: (refs\/heads\/.+)\n?$/;

/** Mostly it stands in a file; git is asked only where it does not. */
export async function headOf(host: GitHost, { gitDir, commonDir }: Checkout): Promise<Head> {
  const read = (...names: string[]): Promise<string> => readPlainFile(path.join(...names));
  const head = await read(gitDir, 'HEAD');
  const branch = BRANCH.exec(head)?.[1];
  const commit = branch === undefined ? OID.exec(head)?.[1] : await branchTip(branch);
  return commit === undefined ? readHead(host, gitDir) : { commit, branch };

  async function branchTip(name: string): Promise<string | undefined> {
    const loose = await read(commonDir, name);
    if (loose !== '') return OID.exec(loose)?.[1];
    const line = (await read(commonDir, 'packed-refs')).split('\n').find((packed) => packed.endsWith(` ${name}`));
    return OID.exec(line?.slice(0, -name.length - 1) ?? '')?.[1];
  }
}

/** Where git notes every move of HEAD. */
export function headLog(gitDir: string): string {
  return path.join(gitDir, 'logs', 'HEAD');
}

/** How far the log of HEAD goes; undefined if the repository keeps none. */
export async function headLogEnd({ gitDir }: Checkout): Promise<number | undefined> {
  return (await lstat(headLog(gitDir)).catch(() => undefined))?.size;
}

/** The commit behind a name, or undefined. */
export async function resolveCommit(host: GitHost, gitDir: string, name: string): Promise<string | undefined> {
  const found = await gitIn(host, gitDir)(
    ['rev-parse', '--quiet', '--verify', '--end-of-options', `${name}^{commit}`],
    {
      codes: [0, 1, 128],
    },
  );
  return /^[0-9a-f]{40,64}$/.test(found.trim()) ? found.trim() : undefined;
}

export async function treeOf(host: GitHost, gitDir: string, commit: string): Promise<string> {
  return (await gitIn(host, gitDir)(['rev-parse', '--verify', `${commit}^{tree}`])).trim();
}

export async function messageOfCommit(host: GitHost, gitDir: string, commit: string): Promise<string> {
  const text = await gitIn(host, gitDir)(['cat-file', 'commit', commit]);
  return text.slice(text.indexOf('\n\n') + 2).trim();
}

export async function isAncestor(host: GitHost, gitDir: string, older: string, newer: string): Promise<boolean> {
  const { code } = await gitIn(host, gitDir).bytes(['merge-base', '--is-ancestor', older, newer], { codes: [0, 1] });
  return code === 0;
}

export interface ListedWorktree {
  readonly path: string;
  readonly branch: string | undefined;
  readonly isBare: boolean;
  /** The directory is gone. */
  readonly isPrunable: boolean;
}

export async function listGitWorktrees(host: GitHost, commonDir: string): Promise<ListedWorktree[]> {
  const git = gitIn(host, commonDir);
  const text = await patiently(() => git(['worktree', 'list', '--porcelain', '-z']));
  return text
    .split('\0\0')
    .filter((block) => block !== '')
    .map((block) => {
      const lines = zeroSeparated(block);
      const value = (name: string): string | undefined =>
        lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
      return {
        // Git writes forward slashes on Windows too.
        path: path.normalize(value('worktree') ?? ''),
        branch: value('branch'),
        isBare: lines.includes('bare'),
        isPrunable: lines.some((line) => /^prunable\b/.test(line)),
      };
    });
}

/** Where a branch is checked out, other than in the worktree at `except`. */
export async function checkoutOf(
  host: GitHost,
  commonDir: string,
  branch: string,
  except?: string,
): Promise<Checkout | undefined> {
  const [found, second] = (await listGitWorktrees(host, commonDir)).filter(
    (listed) => listed.branch === branch && !listed.isBare && listed.path !== except,
  );
  if (!found) return undefined;
  // Only one of them could follow; the other would appear to undo the work.
  if (second)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${shortBranch(branch)} is checked out in two places, ${found.path} and ${second.path}; switch to another branch in one of them. Nothing was changed.`,
    );
  try {
    const workTree = await realpath(found.path);
    const gitDir = await realpath(
      (await gitAt(host, workTree)(['rev-parse', '--absolute-git-dir'])).replace(/\n$/, ''),
    );
    // Anyone who can write in a working tree can make its .git name any directory.
    if (gitDir !== commonDir && path.dirname(gitDir) !== path.join(commonDir, 'worktrees'))
      throw new DomainError(
        'INVALID_ARGUMENT',
        `${workTree} does not point back to ${commonDir}. Nothing was changed.`,
      );
    return { workTree, gitDir, commonDir };
  } catch (error) {
    if (!(error instanceof GitError) && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${shortBranch(branch)} is checked out in ${found.path}, which cannot be used (${found.isPrunable ? 'it is gone: git worktree prune' : 'git does not accept it'}). Nothing was changed.`,
    );
  }
}

export interface Ref {
  readonly ref: string;
  readonly oid: string;
}

/** Branches, including remote ones, and tags that contain the commit. */
export async function refsHolding(host: GitHost, commonDir: string, commit: string): Promise<Ref[]> {
  const text = await gitIn(host, commonDir)(
    [
      'for-each-ref',
      '--format=%(refname) %(objectname)',
      '--contains',
      commit,
      'refs/heads',
      'refs/remotes',
      'refs/tags',
    ],
    { codes: [0, 128, 129] },
  );
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [ref = '', oid = ''] = line.split(' ');
      return { ref, oid };
    });
}

/** A rebase or bisect detaches HEAD, and restores its branch afterwards. */
export async function operationOnBranch(commonDir: string, branch: string): Promise<string | undefined> {
  const linked = path.join(commonDir, 'worktrees');
  const entries = (await readdir(linked).catch(() => [])).map((name) => path.join(linked, name));
  for (const gitDir of [commonDir, ...entries]) {
    const read = (...names: string[]): Promise<string> => readPlainFile(path.join(gitDir, ...names));
    const [merging, applying, others, bisecting] = await Promise.all([
      read('rebase-merge', 'head-name'),
      read('rebase-apply', 'head-name'),
      read('rebase-merge', 'update-refs'),
      read('BISECT_START'),
    ]);
    if ([merging.trim(), applying.trim(), ...others.split('\n')].includes(branch)) return 'rebase';
    if (bisecting.trim() === shortBranch(branch)) return 'bisect';
  }
  return undefined;
}

export function shortBranch(ref: string): string {
  return ref.replace(/^refs\/heads\//, '');
}
