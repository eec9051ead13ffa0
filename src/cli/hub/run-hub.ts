import type { CommandSource } from '../run.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { HubUnavailable } from '../../transports/attach/connect-hub.ts';
import { HUB_ACTIONS } from '../commands.ts';
import { parseFlags, refuseWords, requireAction, type Flags } from '../parse-flags.ts';

export interface HubCommandContext extends CommandSource {
  readonly settings: Settings;
  readonly version: string;
}

/** Prints its output on stdout; resolves with the exit code. */
type Action = (context: HubCommandContext, flags: readonly string[]) => Promise<number>;

const ACTIONS: Readonly<Record<keyof typeof HUB_ACTIONS, () => Promise<Action>>> = {
  start: async () => (await import('./background.ts')).startInBackground,
  stop: async () => (await import('./background.ts')).stopHub,
  restart: async () => (await import('./background.ts')).restartHub,
  status: async () => (await import('./running-hub.ts')).showStatus,
  logs: async () => (await import('./background.ts')).showLogs,
  open: async () => (await import('./running-hub.ts')).openDashboard,
  install: async () => (await import('./service.ts')).installService,
  uninstall: async () => (await import('./service.ts')).uninstallService,
};

/** Of the others an agent must not get the permissions, and what it starts must not end with its session. */
const ALLOWED_IN_SESSION: readonly string[] = ['status', 'logs'];

export async function runHub(rest: readonly string[], context: HubCommandContext): Promise<number> {
  const [name, ...options] = rest;
  if (name === undefined) {
    if (refuses('claude-code-mcp hub', context)) return 1;
    const { runInForeground } = await import('./foreground.ts');
    return runInForeground(context);
  }
  if (name.startsWith('-')) parseFlags('hub', {}, rest);
  const action = requireAction('hub', name, Object.keys(HUB_ACTIONS) as (keyof typeof HUB_ACTIONS)[]);
  const { given, words } = parseFlags<Flags>(`hub ${action}`, HUB_ACTIONS[action].flags, options);
  refuseWords(`hub ${action}`, words);
  if (!ALLOWED_IN_SESSION.includes(action) && refuses(`claude-code-mcp hub ${action}`, context)) return 1;
  const run = await ACTIONS[action]();
  try {
    return await run(
      context,
      Object.keys(given).map((flag) => `--${flag}`),
    );
  } catch (error) {
    if (!(error instanceof HubUnavailable)) throw error;
    process.stderr.write(`The hub refused: ${error.message}\n`);
    return 1;
  }
}

function refuses(command: string, { settings }: HubCommandContext): boolean {
  if (!runsBelowSession(settings)) return false;
  process.stderr.write(`${refusedBelowSession(command)}\n`);
  return true;
}
