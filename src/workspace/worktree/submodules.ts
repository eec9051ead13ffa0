import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { readHead } from '../git/checkout.ts';
import { zeroSeparated } from '../git/git.ts';
import { readPlainFile } from '../git/plain-file.ts';
import { sealed, type Seal, type SealedUse } from '../git/sealed.ts';
import { readStatus } from '../git/status.ts';

const SUBMODULE = '160000 ';
const MAX_DEPTH = 5;

/**
 * Submodules with uncommitted changes, each with a trailing slash. The status of the outer repository does not show
 * these: it would let the submodule's own configuration run programs.
 */
export async function dirtySubmodules(seal: Seal, use: SealedUse, depth = 0): Promise<string[]> {
  const staged = await sealed(seal, use, (git) => git(['ls-files', '--stage', '-z']));
  const links = zeroSeparated(staged).filter((line) => line.startsWith(SUBMODULE));
  const names = links.map((line) => line.slice(line.indexOf('\t') + 1));
  const dirty: string[] = [];
  for (const name of names) if (await isDirty(seal, name, depth)) dirty.push(`${name}/`);
  return dirty;
}

async function isDirty(seal: Seal, name: string, depth: number): Promise<boolean> {
  const workTree = path.join(seal.checkout.workTree, name);
  const gitDir = await gitDirOf(workTree);
  if (gitDir === undefined) return false;
  if (depth === MAX_DEPTH) return true;
  const config = seal.pinned.config.filter(([key]) => !key.startsWith('filter.') && !key.startsWith('core.sparse'));
  const inner: Seal = {
    ...seal,
    checkout: { workTree, gitDir, commonDir: gitDir },
    pinned: { config, exclude: '', attributes: '', sparse: '' },
  };
  try {
    const { commit: head } = await readHead(seal.host, gitDir);
    const use = { head, objects: 'scratch', index: path.join(gitDir, 'index'), files: true } as const;
    const status = await sealed(inner, use, (git) => readStatus(git, workTree));
    return status.length > 0 || (await dirtySubmodules(inner, use, depth + 1)).length > 0;
  } catch {
    // What cannot be read is not known to be clean.
    return true;
  }
}

/** Undefined where the submodule is not checked out. */
async function gitDirOf(workTree: string): Promise<string | undefined> {
  const link = path.join(workTree, '.git');
  const stats = await lstat(link).catch(() => undefined);
  if (stats?.isDirectory() === true) return link;
  if (stats?.isFile() !== true) return undefined;
  const target = /^gitdir: (.*)$/m.exec(await readPlainFile(link))?.[1];
  return target === undefined ? undefined : path.resolve(workTree, target);
}
