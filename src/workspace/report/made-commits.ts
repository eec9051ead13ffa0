import { headLog, type Checkout } from '../git/checkout.ts';
import type { GitHost } from '../git/git-process.ts';
import { gitIn, readPlainFile } from '../git/git.ts';
import type { Snapshot } from './snapshot.ts';
import type { Commit } from './work-report.ts';

/*
 * Which commits were made here. What HEAD has now and did not have before may also have been pulled or switched to, and
 * a commit may be on a branch that HEAD has left again: the log of HEAD tells, which git only ever appends to.
 */

/** What git writes for an action that makes a commit: `commit (amend): subject`, `rebase (pick): subject`. */
const MAKES_COMMIT =
  /^(commit|cherry-pick|revert|am)\b.*?: |\((pick|squash|fixup|reword|edit|continue)\): |: Merge made by /;

const MAX_COMMITS = 1_000;

/** Those that were made between two looks and that HEAD or a branch still has, newest first. */
export async function commitsBetween(
  host: GitHost,
  { gitDir }: Checkout,
  before: Snapshot,
  now: Snapshot,
): Promise<Commit[]> {
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
