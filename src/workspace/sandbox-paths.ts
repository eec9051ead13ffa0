import path from 'node:path';

export interface RepositoryWrites {
  /** Directories and files that a session commits with. */
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
 * What of a repository a sandboxed session has to write so that it can commit in its worktree. Git makes `<ref>.lock`
 * beside a ref and renames it, so that a directory must be writable, not only a file. Undefined where that directory is
 * `refs/heads` itself, which would open every branch.
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
