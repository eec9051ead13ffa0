/** Where a rehearsal runs: its own directories, and an environment isolated from the user's. */

import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '../../config/load-settings.ts';
import { SETTING_KEYS, variableOf, flagOf } from '../../config/settings-table.ts';
import { ServerClient } from './server-client.ts';

/** What programs need to run at all, on each platform. */
const NEEDED = ['PATH', 'SYSTEMROOT', 'SYSTEMDRIVE', 'COMSPEC', 'PATHEXT', 'WINDIR', 'PROGRAMFILES', 'PROGRAMDATA'];

export interface World {
  readonly root: string;
  readonly stateDir: string;
  /** For programs that must not see the person's own home. */
  readonly toolEnv: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

export async function createWorld(env: NodeJS.ProcessEnv, parent: string): Promise<World> {
  const root = await realpath(await mkdtemp(path.join(parent, 'ccm-')));
  const home = path.join(root, 'home');
  const temporary = path.join(root, 'tmp');
  for (const directory of [path.join(home, '.claude'), temporary]) await mkdir(directory, { recursive: true });
  return {
    root,
    stateDir: path.join(root, 'state'),
    toolEnv: {
      ...pick(env, (name) => NEEDED.includes(name.toUpperCase())),
      HOME: home,
      USERPROFILE: home,
      TMPDIR: temporary,
      TEMP: temporary,
      TMP: temporary,
      CLAUDE_CONFIG_DIR: path.join(home, '.claude'),
      GIT_CONFIG_NOSYSTEM: '1',
    },
    remove: () => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  };
}

/** The user's environment without the operator's rules: those are for real work and must not change the outcome of a rehearsal. */
export function liveEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const rules = new Set(SETTING_KEYS.map(variableOf));
  return pick(env, (name) => !rules.has(name.toUpperCase()));
}

function pick(env: NodeJS.ProcessEnv, wanted: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && wanted(entry[0])),
  );
}

/** Where programs are; the operator's other rules are for real work. */
export type RehearsalSettings = Pick<Settings, 'executable' | 'gitBashPath'>;

export interface Rehearsal {
  readonly program: string;
  readonly version: string;
  readonly settings: RehearsalSettings;
  readonly stateDir: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the server as a client would, with rules that are the same on every machine, and connects to it. */
export function openRehearsal(rehearsal: Rehearsal): Promise<ServerClient> {
  const { program, version, settings, stateDir, cwd, env } = rehearsal;
  const flags = {
    toolset: 'compact',
    approvals: 'caller',
    logLevel: 'error',
    stateDir,
    executable: settings.executable,
    gitBashPath: settings.gitBashPath,
  } as const;
  const args = (Object.keys(flags) as (keyof typeof flags)[]).flatMap((key) => {
    const value = flags[key];
    return value === undefined ? [] : [flagOf(key), value];
  });
  return ServerClient.connect({ program, args, cwd, env }, version);
}
