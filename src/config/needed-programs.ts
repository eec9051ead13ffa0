import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Host } from './host.ts';
import { findProgram } from './setting-kinds.ts';

/** On Windows Claude Code runs its commands in Git Bash; without one it has no Bash tool, or does not start at all. */
export type GitBash =
  | { readonly kind: 'not needed' }
  | { readonly kind: 'found'; readonly file: string }
  | { readonly kind: 'missing'; readonly problem: string; readonly remedy: string };

const GIT_BASH_REMEDY =
  'Install Git for Windows from https://git-scm.com/downloads/win, or set CLAUDE_CODE_GIT_BASH_PATH to your bash.exe, ' +
  'such as C:\\Program Files\\Git\\bin\\bash.exe.';

export function findGitBash(
  { platform, env }: Pick<Host, 'platform' | 'env'>,
  configured: string | undefined,
  exists: (file: string) => boolean = existsSync,
): GitBash {
  if (platform !== 'win32') return { kind: 'not needed' };
  const file = configured === undefined ? candidates(env).find(exists) : exists(configured) ? configured : undefined;
  if (file !== undefined) return { kind: 'found', file };
  const problem = configured === undefined ? 'bash.exe was not found' : `${configured} does not exist`;
  return { kind: 'missing', problem, remedy: GIT_BASH_REMEDY };
}

/** Where the installer puts it, then beside the git that is on the PATH. */
function candidates(env: NodeJS.ProcessEnv): string[] {
  const { win32 } = path;
  const local = env['LOCALAPPDATA'];
  const roots = [
    win32.join(env['PROGRAMFILES'] ?? 'C:\\Program Files', 'Git'),
    win32.join(env['PROGRAMFILES(X86)'] ?? 'C:\\Program Files (x86)', 'Git'),
    ...(local === undefined ? [] : [win32.join(local, 'Programs', 'Git')]),
    ...(env['PATH'] ?? env['Path'] ?? '')
      .split(win32.delimiter)
      .filter((directory) => /[\\/](cmd|bin)[\\/]?$/i.test(directory))
      .map((directory) => win32.dirname(directory)),
  ];
  return roots.map((root) => win32.join(root, 'bin', 'bash.exe'));
}

/** The components of Claude Code's sandbox on Linux, by program and Debian package. macOS has its own. */
const LINUX_PROGRAMS = { bwrap: 'bubblewrap', socat: 'socat' } as const;

export const SANDBOX_REMEDY =
  'Install the packages bubblewrap and socat (Debian and Ubuntu: apt-get install bubblewrap socat), or turn CLAUDE_CODE_MCP_SANDBOX off.';

/** The packages that the sandbox still needs on this machine. */
export function missingSandboxPackages(host: Pick<Host, 'env' | 'platform'>): string[] {
  if (host.platform !== 'linux') return [];
  return Object.entries(LINUX_PROGRAMS)
    .filter(([program]) => findProgram(program, { homedir: '', ...host }) === undefined)
    .map(([, debianPackage]) => debianPackage);
}
