import type { CommandSource } from '../run.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { SettingsError, quote } from '../../config/settings-error.ts';
import { HubUnavailable } from '../../transports/attach/connect-hub.ts';

export interface HubCommandContext extends CommandSource {
  readonly settings: Settings;
  readonly version: string;
}

/** Prints its output on stdout; resolves with the exit code. */
type Action = (context: HubCommandContext, rest: readonly string[]) => Promise<number>;

interface Subcommand {
  readonly options: readonly string[];
  /** An agent must not get these permissions, and what it starts must not end with its session. */
  readonly refusedInSession: boolean;
  readonly load: () => Promise<Action>;
}

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  start: {
    options: [],
    refusedInSession: true,
    load: async () => (await import('./background.ts')).startInBackground,
  },
  stop: { options: ['--keep'], refusedInSession: true, load: async () => (await import('./background.ts')).stopHub },
  restart: { options: [], refusedInSession: true, load: async () => (await import('./background.ts')).restartHub },
  status: {
    options: ['--json'],
    refusedInSession: false,
    load: async () => (await import('./running-hub.ts')).showStatus,
  },
  logs: {
    options: ['--follow', '-f'],
    refusedInSession: false,
    load: async () => (await import('./logs.ts')).showLogs,
  },
  open: {
    options: ['--print'],
    refusedInSession: true,
    load: async () => (await import('./running-hub.ts')).openDashboard,
  },
  install: {
    options: ['--print'],
    refusedInSession: true,
    load: async () => (await import('./service.ts')).installService,
  },
  uninstall: { options: [], refusedInSession: true, load: async () => (await import('./service.ts')).uninstallService },
};

export async function runHub(rest: readonly string[], context: HubCommandContext): Promise<number> {
  const [name, ...options] = rest;
  if (name === undefined) {
    if (refuses('claude-code-mcp hub', context)) return 1;
    const { runInForeground } = await import('./foreground.ts');
    return runInForeground(context);
  }
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined;
  if (!subcommand)
    throw new SettingsError(`Unknown command hub ${quote(name)}; there are ${Object.keys(SUBCOMMANDS).join(', ')}.`);
  const stray = options.find((option) => !subcommand.options.includes(option));
  if (stray !== undefined) throw new SettingsError(`hub ${name} does not take ${quote(stray)}.`);
  if (subcommand.refusedInSession && refuses(`claude-code-mcp hub ${name}`, context)) return 1;
  const run = await subcommand.load();
  try {
    return await run(context, options);
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
