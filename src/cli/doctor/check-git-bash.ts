import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Host } from '../../config/host.ts';
import { ok, problem, type Finding } from './finding.ts';

const REMEDY =
  'Install Git for Windows from https://git-scm.com/downloads/win, or set CLAUDE_CODE_GIT_BASH_PATH to your bash.exe, ' +
  'such as C:\\Program Files\\Git\\bin\\bash.exe.';

/** On Windows the commands of Claude Code run in Git Bash. Elsewhere there is nothing to check. */
export function checkGitBash(
  { platform, env }: Pick<Host, 'platform' | 'env'>,
  configured: string | undefined,
  exists: (file: string) => boolean = existsSync,
): Finding | undefined {
  const check = 'Git Bash';
  if (platform !== 'win32') return undefined;
  if (configured !== undefined) {
    return exists(configured) ? ok(check, configured) : problem(check, `there is no ${configured}`, REMEDY);
  }
  const found = candidates(env).find(exists);
  return found === undefined ? problem(check, 'bash.exe was not found', REMEDY) : ok(check, found);
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
