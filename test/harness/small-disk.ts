/** A file system of its own that a test can fill, or that is read-only. Only root can mount one. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const canMount = process.platform === 'linux' && process.getuid?.() === 0 && mountingWorks();

export interface SmallDisk {
  /** Leaves no space for anything. */
  fill(): void;
  /** Gives the space back. */
  free(): void;
  /** Whoever still has a file open there keeps it. Idempotent. */
  unmount(): void;
}

export function mountSmallDisk(directory: string, options: string): SmallDisk {
  mkdirSync(directory, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'claude-code-mcp-test', directory]);
  const filler = path.join(directory, 'filler');
  let isMounted = true;
  return {
    fill() {
      const block = Buffer.alloc(4096);
      try {
        for (;;) writeFileSync(filler, block, { flag: 'a' });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    },
    free: () => rmSync(filler, { force: true }),
    unmount() {
      if (isMounted) execFileSync('umount', ['-l', directory]);
      isMounted = false;
    },
  };
}

/** A container may forbid it even to root. */
function mountingWorks(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
