import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { PinnedSettings } from '../../schema/worktree-record.ts';
import type { Checkout } from './checkout.ts';
import { bindGit, copyPlainFile, type Git } from './git.ts';
import type { GitHost } from './git-process.ts';
import { configText, FILTER_COMMAND } from './pinned-settings.ts';

/** Where files are read or written for a session, and what git may know while doing so. */
export interface Seal {
  readonly host: GitHost;
  readonly checkout: Checkout;
  readonly pinned: PinnedSettings;
  /** The server's own directory for this session; snapshot objects stay in it. */
  readonly scratch: string;
}

export interface SealedUse {
  /** The commit HEAD resolves to, if the command asks. */
  readonly head?: string | undefined;
  /** Whether new objects belong to the repository or only to the session's snapshots. */
  readonly objects: 'repository' | 'scratch';
  readonly index?: string;
  /** False: no file of the working tree is read, not even .gitattributes. */
  readonly files: boolean;
}

/**
 * Git over the session's files with our own git directory: objects come from the repository, settings from what was
 * pinned. The repository's configuration, hooks, included files and worktree settings are not read at all, so that
 * nothing a session writes into them can run, not even between our check and our run.
 */
export async function sealed<T>(
  seal: Seal,
  use: SealedUse,
  work: (git: Git, directory: string) => Promise<T>,
): Promise<T> {
  const { host, checkout, pinned, scratch } = seal;
  const ownObjects = path.join(scratch, 'objects');
  // A few small files of our own: made at once they take a tenth of the time that they take one by one in other threads.
  mkdirSync(ownObjects, { recursive: true, mode: 0o700 });
  const directory = mkdtempSync(path.join(scratch, 'seal-'));
  try {
    const write = (content: string, ...names: string[]): void => writeFileSync(path.join(directory, ...names), content);
    for (const name of ['refs', 'info', 'empty']) mkdirSync(path.join(directory, name));
    write(`${use.head ?? 'ref: refs/heads/none'}\n`, 'HEAD');
    write(configText(settingsOf(pinned, checkout)), 'config');
    write(pinned.exclude, 'info', 'exclude');
    write(use.files ? pinned.attributes : '', 'info', 'attributes');
    if (pinned.sparse !== '') write(pinned.sparse, 'info', 'sparse-checkout');
    const index = use.index ?? path.join(directory, 'index');
    await Promise.all([
      copyPlainFile(path.join(checkout.commonDir, 'shallow'), path.join(directory, 'shallow')),
      use.index === undefined ? undefined : copySharedIndexes(use.index, directory),
    ]);
    const objects = path.join(checkout.commonDir, 'objects');
    const isOwn = use.objects === 'scratch';
    const env = {
      GIT_DIR: directory,
      GIT_WORK_TREE: use.files ? checkout.workTree : path.join(directory, 'empty'),
      GIT_INDEX_FILE: index,
      GIT_OBJECT_DIRECTORY: isOwn ? ownObjects : objects,
      // Git does not write objects that an alternate has: the repository would lack them as soon as the session's
      // snapshots are gone.
      ...(isOwn && { GIT_ALTERNATE_OBJECT_DIRECTORIES: `"${objects.replace(/[\\"]/g, '\\$&')}"` }),
      [NOWHERE]: path.join(directory, 'empty'),
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
    };
    return await work(bindGit(host, directory, ['--no-pager', '--literal-pathspecs'], env), directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Git starts a filter in the working tree, where it could pick up a script or a Python module that the session has
 * written.
 */
const NOWHERE = 'CLAUDE_CODE_MCP_NOWHERE';
const LEAVE = `cd "$${NOWHERE}" || exit; `;

function settingsOf({ config }: PinnedSettings, { commonDir }: Checkout): (readonly [string, string])[] {
  const hasObjectFormat = config.some(([key]) => key === 'extensions.objectformat');
  const hasLfs = config.some(([key]) => key.startsWith('filter.lfs.'));
  return [
    ['core.repositoryformatversion', hasObjectFormat ? '1' : '0'],
    ['core.bare', 'false'],
    ...config.map(
      ([key, value]) => [key, FILTER_COMMAND.test(key) && value !== '' ? `${LEAVE}${value}` : value] as const,
    ),
    ['core.hookspath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.untrackedcache', 'false'],
    ['core.commitgraph', 'false'],
    ['core.quotepath', 'false'],
    ['core.safecrlf', 'false'],
    ['gc.auto', '0'],
    ['advice.graftfiledeprecated', 'false'],
    // What git-lfs cleans must be found again from the repository.
    ...(hasLfs ? [['lfs.storage', path.join(commonDir, 'lfs')] as const] : []),
  ];
}

/** A split index names a second file, which git looks for in its git directory. */
async function copySharedIndexes(index: string, directory: string): Promise<void> {
  const from = path.dirname(index);
  const names = await readdir(from).catch(() => []);
  for (const name of names.filter((name) => name.startsWith('sharedindex.')))
    await copyPlainFile(path.join(from, name), path.join(directory, name));
}
