import path from 'node:path';

export interface RepositoryWrites {
  /** Directories and files that a session needs to commit. */
  readonly allow: readonly string[];
  /** Below those, what would change how git behaves for others. */
  readonly deny: readonly string[];
}

export interface SandboxedWorktree {
  readonly commonDir: string;
  /** Name of the entry below `worktrees`. */
  readonly entry: string;
  /** Full name. */
  readonly branch: string;
}

/**
 * The parts of a repository that a sandboxed session must be able to write in order to commit in its worktree. Git
 * creates `<ref>.lock` beside a ref and renames it, so the directory must be writable, not only the file. Undefined if
 * that directory is `refs/heads` itself, which would open every branch.
 */
export function sandboxWrites({ commonDir, entry, branch }: SandboxedWorktree): RepositoryWrites | undefined {
  const refs = path.posix.dirname(branch);
  if (!refs.startsWith('refs/heads/')) return undefined;
  const own = path.join(commonDir, 'worktrees', entry);
  return {
    allow: [path.join(commonDir, 'objects'), path.join(commonDir, refs), path.join(commonDir, 'logs', refs), own],
    deny: [
      // Which objects count, and which repository the worktree belongs to.
      path.join(commonDir, 'objects', 'info'),
      ...['commondir', 'gitdir', 'config.worktree'].map((name) => path.join(own, name)),
    ],
  };
}
