import os from 'node:os';
import path from 'node:path';
import { SettingsError } from './bad-input.ts';

/** Everything about the machine that settings depend on, passed in so that tests can simulate any machine. */
export interface Host {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly homedir: string;
  readonly platform: NodeJS.Platform;
}

/** The machine and process we run in. */
export function thisHost(): Host {
  return { env: process.env, cwd: currentDirectory(), homedir: homeDirectory(), platform: process.platform };
}

/** A terminal or a client may stay in a directory that has been removed, such as a discarded worktree. */
function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    throw new SettingsError('The current directory no longer exists, or cannot be read. Change to another one.');
  }
}

/** A container may run as a user id that no user has. */
function homeDirectory(): string {
  try {
    return os.homedir();
  } catch {
    throw new SettingsError('This user has no home directory. Set HOME to a directory that this user may write to.');
  }
}

export function pathsOf(host: Pick<Host, 'platform'>): path.PlatformPath {
  return host.platform === 'win32' ? path.win32 : path.posix;
}

/** Absolute form of a path an operator wrote; `~` is expanded because client configurations pass it unexpanded. */
export function absolutePath(written: string, host: Host): string {
  const paths = pathsOf(host);
  const expanded = /^~(?=$|[/\\])/.test(written) ? paths.join(host.homedir, written.slice(1)) : written;
  return paths.resolve(host.cwd, expanded);
}

/** Where Claude Code keeps its per-user files. */
export function claudeConfigDir({ env, homedir }: Pick<Host, 'env' | 'homedir'>): string {
  return env['CLAUDE_CONFIG_DIR'] ?? path.join(homedir, '.claude');
}

/** Where this server keeps its own files, following the conventions of each platform. */
export function defaultStateDir(host: Host): string {
  const paths = pathsOf(host);
  return paths.join(stateHome(host, paths), 'claude-code-mcp');
}

function stateHome(host: Host, paths: path.PlatformPath): string {
  switch (host.platform) {
    case 'win32':
      return absoluteOr(paths.join(host.homedir, 'AppData', 'Local'), host.env['LOCALAPPDATA'], paths);
    case 'darwin':
      return paths.join(host.homedir, 'Library', 'Application Support');
    default:
      return absoluteOr(paths.join(host.homedir, '.local', 'state'), host.env['XDG_STATE_HOME'], paths);
  }
}

/** The XDG specification tells programs to ignore a relative path; an empty one means the same everywhere. */
function absoluteOr(fallback: string, configured: string | undefined, paths: path.PlatformPath): string {
  return configured !== undefined && paths.isAbsolute(configured) ? configured : fallback;
}
