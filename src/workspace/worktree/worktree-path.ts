import { createHash } from 'node:crypto';
import path from 'node:path';

/** Long enough to recognise a repository, short enough for Windows. */
const MAX_NAME_LENGTH = 24;
/** Without core.longpaths git on Windows cannot create a longer path. */
export const WINDOWS_MAX_PATH = 260;

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
