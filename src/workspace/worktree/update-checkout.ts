import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { diffRaw, type Pair } from '../report/compare.ts';
import { zeroSeparated, type Git } from '../git/git.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { readStatus } from '../git/status.ts';

export interface CheckoutUpdate {
  /** The commit that the checkout is at. */
  readonly from: string;
  /** Commit or tree. */
  readonly to: string;
  /** The index to update; one other than the checkout's leaves the changes unstaged. */
  readonly index: string;
}

/** Files with someone else's changes that the update would have to touch. */
export async function filesInTheWay(seal: Seal, { from, to, index }: CheckoutUpdate): Promise<string[]> {
  const { pinned, checkout } = seal;
  const { workTree } = checkout;
  return sealed(seal, { head: from, objects: 'repository', index, files: true }, async (git) => {
    const touched = new Map((await diffRaw(git, from, to)).map((pair) => [pair.path, pair]));
    const inTheWay = new Set<string>();
    for (const { path: name } of await readStatus(git, workTree)) {
      const isBelow = name.endsWith('/') && [...touched.keys()].some((file) => file.startsWith(name));
      if (touched.has(name) || isBelow) inTheWay.add(name);
    }
    const ignoresCase = pinned.config.some(([key, value]) => key === 'core.ignorecase' && value === 'true');
    const goes = goingFrom(touched, ignoresCase);
    for (const pair of touched.values()) {
      // Git would silently overwrite ignored files, and remove a submodule with everything in it.
      if (pair.before === null && pair.after !== null) {
        const found = await occupied(workTree, pair.path, goes);
        if (found !== undefined) inTheWay.add(found);
      } else if (pair.before?.mode === SUBMODULE && pair.after?.mode !== SUBMODULE) {
        const isReplaced = pair.after !== null || [...touched.keys()].some((name) => name.startsWith(`${pair.path}/`));
        if (isReplaced && (await hasContent(path.join(workTree, pair.path)))) inTheWay.add(`${pair.path}/`);
      }
    }
    return [...inTheWay].sort();
  });
}

const SUBMODULE = '160000';

/** Whether the update itself removes a file; on a case-insensitive file system, also under another spelling. */
export function goingFrom(touched: ReadonlyMap<string, Pair>, ignoresCase: boolean): (name: string) => boolean {
  const spelt = (name: string): string => (ignoresCase ? name.toLowerCase() : name);
  const going = [...touched.values()].filter(({ before, after }) => before !== null && after === null);
  const names = new Set(going.map((pair) => spelt(pair.path)));
  return (name) => names.has(spelt(name));
}

async function hasContent(directory: string): Promise<boolean> {
  return (await readdir(directory).catch(() => [])).length > 0;
}

/** What already exists where a file must be created. */
async function occupied(workTree: string, file: string, goes: (name: string) => boolean): Promise<string | undefined> {
  const parts = file.split('/');
  for (let length = 1; length <= parts.length; length++) {
    const name = parts.slice(0, length).join('/');
    const stats = await lstat(path.join(workTree, name)).catch(() => undefined);
    if (!stats) return undefined;
    if (stats.isDirectory()) {
      if (length < parts.length) continue;
      const below = await readdir(path.join(workTree, name), { recursive: true, withFileTypes: true });
      const files = below.filter((entry) => !entry.isDirectory());
      const names = files.map((entry) => path.relative(workTree, path.join(entry.parentPath, entry.name)));
      return names.find((other) => !goes(other.split(path.sep).join('/')));
    }
    if (!goes(name)) return name;
  }
  return undefined;
}

/** Writes the files that differ. Git checks all of them first and refuses before touching any. */
export async function updateCheckout(seal: Seal, { from, to, index }: CheckoutUpdate): Promise<void> {
  await sealed(seal, { head: from, objects: 'repository', index, files: true }, async (git) => {
    await git(['read-tree', '-m', '-u', from, to], { timeoutMs: 600_000 });
  });
}

/**
 * After a crash: files that already have their new content are entered in the index, so that the update can be
 * repeated. Any other change to a touched file is left for a person to look at. Returns how many files there are.
 */
export async function enterFinishedFiles(seal: Seal, { from, to, index }: CheckoutUpdate): Promise<number> {
  return sealed(seal, { head: from, objects: 'repository', index, files: true }, async (git, directory) => {
    const touched = await diffRaw(git, from, to);
    const now = await contentOf(
      git,
      path.join(directory, 'now'),
      touched.map((pair) => pair.path),
      seal.checkout.workTree,
    );
    const finished = touched.filter((pair) => (now.get(pair.path) ?? null) === (pair.after?.oid ?? null));
    const removal = `0 ${'0'.repeat(from.length)}\t`;
    const input = finished.map(
      (pair) => `${pair.after ? `${pair.after.mode} ${pair.after.oid} 0\t` : removal}${pair.path}\0`,
    );
    await git(['update-index', '--replace', '-z', '--index-info'], { input: input.join('') });
    await git(['update-index', '-q', '--refresh'], { codes: [0, 1] });
    return finished.length;
  });
}

async function contentOf(
  git: Git,
  index: string,
  files: readonly string[],
  workTree: string,
): Promise<Map<string, string>> {
  const there: string[] = [];
  for (const file of files) {
    const stats = await lstat(path.join(workTree, file)).catch(() => undefined);
    if (stats && !stats.isDirectory()) there.push(file);
  }
  const env = { GIT_INDEX_FILE: index };
  await git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], {
    env,
    input: there.map((file) => `${file}\0`).join(''),
  });
  return new Map(
    zeroSeparated(await git(['ls-files', '--stage', '-z'], { env })).map((line) => {
      const tab = line.indexOf('\t');
      return [line.slice(tab + 1), line.slice(0, tab).split(' ')[1] ?? ''];
    }),
  );
}
