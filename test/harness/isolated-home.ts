/** A home and a project directory for one test, so that it neither reads nor changes the real user's files. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface IsolatedHome {
  readonly home: string;
  readonly project: string;
  readonly configDir: string;
  readonly stateDir: string;
  /** Variables that point a program here, `SHORT_LIFE` and the PATH; nothing else from this process's environment. */
  env(): Record<string, string>;
  remove(): Promise<void>;
}

export interface HomeOptions {
  /** The project directory is a git repository with one commit. */
  readonly git?: boolean;
  /** The user's Claude Code settings. */
  readonly settings?: object;
}

/**
 * Claude Code's engine optimises hot code, and collects garbage whenever it is idle. In a process
 * that lives for a few turns, each takes about a seventh of its CPU time.
 */
export const SHORT_LIFE = { BUN_JSC_useDFGJIT: '0', BUN_GC_TIMER_DISABLE: '1' };

export async function createHome({ git = false, settings }: HomeOptions = {}): Promise<IsolatedHome> {
  // The real path, as Claude Code reports it; short, because sockets are created in it.
  const root = await realpath(await mkdtemp(join(tmpdir(), 'ccm-')));
  const home = join(root, 'home');
  const project = join(root, 'project');
  const temporary = join(root, 'tmp');
  const configDir = join(home, '.claude');
  const stateDir = join(home, '.local', 'state');
  for (const directory of [configDir, stateDir, project, temporary]) await mkdir(directory, { recursive: true });

  const env = (): Record<string, string> => ({
    ...SHORT_LIFE,
    ...inherited('PATH', ...(process.platform === 'win32' ? ['SYSTEMROOT', 'COMSPEC', 'PATHEXT'] : [])),
    HOME: home,
    TMPDIR: temporary,
    XDG_STATE_HOME: stateDir,
    CLAUDE_CONFIG_DIR: configDir,
    ...(process.platform === 'win32' ? { USERPROFILE: home, TEMP: temporary, TMP: temporary } : {}),
  });
  if (settings !== undefined) await writeFile(join(configDir, 'settings.json'), JSON.stringify(settings, null, 2));
  if (git) await makeRepository(project, env());

  return {
    home,
    project,
    configDir,
    stateDir,
    env,
    remove: () => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  };
}

function inherited(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? '']));
}

/** With one commit. */
export async function makeRepository(directory: string, env: Readonly<Record<string, string>>): Promise<void> {
  const git = (...args: string[]): Promise<unknown> =>
    promisify(execFile)('git', args, { cwd: directory, env: { ...env, GIT_CONFIG_NOSYSTEM: '1' } });
  await git('init', '--quiet', '--initial-branch', 'main');
  await git('config', 'user.name', 'Test');
  await git('config', 'user.email', 'test@example.invalid');
  await git('commit', '--quiet', '--allow-empty', '--message', 'chore: begin');
}
