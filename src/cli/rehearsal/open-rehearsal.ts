import type { Settings } from '../../config/load-settings.ts';
import { flagOf } from '../../config/settings-table.ts';
import { ServerClient } from './server-client.ts';

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
