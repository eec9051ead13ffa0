import { isAncestor } from '../git/checkout.ts';
import { commitTree } from './commit-work.ts';
import { gitIn, zeroSeparated, type Git } from '../git/git.ts';
import { sealed, type Seal } from '../git/sealed.ts';

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
