import process from 'node:process';
import { RULE_KEYS } from '../../config/child-environment.ts';
import type { Host } from '../../config/host.ts';
import {
  ineffectiveSettings,
  DEPTH_VARIABLE,
  depthFrom,
  loadSettings,
  type Settings,
} from '../../config/load-settings.ts';
import { variableOf } from '../../config/settings-table.ts';
import { hostEngine } from '../../engine/engine-host.ts';
import { strictest } from '../../engine/rules/rule-intersection.ts';
import { environmentsOfAncestors } from '../../platform/ancestors.ts';
import type { Opening } from '../../transports/opening.ts';
import type { StandingRules } from '../../engine/ports.ts';
import { serveOverStdio } from '../../transports/stdio.ts';
import { createLog } from './log.ts';

export interface ServeContext extends Host {
  version: string;
  stderr: (text: string) => void;
  /** What the client was already told before the rest of the server was loaded. */
  opening?: Opening | undefined;
  /** Decisions that people have made in advance. */
  standingRules?: StandingRules | undefined;
}

export interface RunningServer {
  /** Ends sessions, processes and the connection. Idempotent. */
  close(): Promise<void>;
}

/** Wires everything up and serves until closed. `settings` are narrowed to those of the sessions around this process. */
export function serve(settings: Settings, context: ServeContext): RunningServer {
  const { version, stderr, opening, standingRules, ...host } = context;
  const log = createLog(settings.logLevel, stderr);
  for (const { what, remedy } of ineffectiveSettings(host.env, settings)) log('warn', `${what}. ${remedy}`);
  const hosted = hostEngine(settings, { ...host, log, standingRules });
  const connection = serveOverStdio(hosted.engine, { name: 'claude-code-mcp', version }, opening, {
    onError: (error) => log('debug', `protocol: ${error.message}`),
    onFirstAnswer: () => {
      void hosted.sweep();
      hosted.preload();
    },
  });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await hosted.engine.close();
    await connection.close();
  };
  return { close: () => (closing ??= close()) };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Shutdown takes at most five seconds: whatever hangs by then must not keep the process alive. */
const FORCE_EXIT_MS = 4_800;

/** Serves until the client disconnects or a signal arrives, then cleans up and exits. */
export async function serveUntilDone(settings: Settings, context: ServeContext): Promise<number> {
  quietWarnings();
  const narrowed = withinEnclosingRules(settings, context);
  const server = serve(narrowed, { ...context, standingRules: await standingRulesOf(narrowed) });
  let exitCode = 0;
  await new Promise<void>((resolve) => {
    const stop = (): void => {
      setTimeout(() => process.exit(exitCode), FORCE_EXIT_MS).unref();
      server.close().then(resolve, resolve);
    };
    for (const signal of SIGNALS) process.on(signal, stop);
    process.stdin.once('end', stop);
    process.stdin.once('close', stop);
    process.stdout.on('error', stop);
    // A client that closes our stderr must not bring the server down.
    process.stderr.on('error', () => undefined);
    process.on('uncaughtException', (error) => {
      exitCode = 1;
      context.stderr(`claude-code-mcp error: stopping after an unexpected error: ${error.stack ?? error.message}\n`);
      stop();
    });
    // The SDK drops promises of a dying process; that must not take the other sessions down.
    process.on('unhandledRejection', (reason) => {
      if (settings.logLevel === 'debug')
        context.stderr(`claude-code-mcp debug: unhandled rejection: ${String(reason)}\n`);
    });
  });
  process.exit(exitCode);
}

/** Most servers have none, and load nothing for them. */
async function standingRulesOf({ rules }: Settings): Promise<StandingRules | undefined> {
  if (rules === undefined) return undefined;
  const { readRulesFile } = await import('../../engine/rules/standing/rules-file.ts');
  return readRulesFile(rules);
}

/** Node prints library warnings on stderr, where users would mistake them for errors of this server. */
function quietWarnings(): void {
  process.removeAllListeners('warning');
  process.on('warning', () => undefined);
}

const RULE_VARIABLES = [DEPTH_VARIABLE, ...RULE_KEYS.map(variableOf)];

/**
 * Settings narrowed to the rules and the depth of the sessions that this server runs in. A project's `.mcp.json` can
 * give the server it names other variables, but cannot change the environment of the Claude Code that reads it. Linux
 * only.
 */
export function withinEnclosingRules(
  settings: Settings,
  host: Host,
  environments: Iterable<NodeJS.ProcessEnv> = environmentsOfAncestors(host.platform),
): Settings {
  let narrowed = settings;
  for (const env of environments) {
    if (depthFrom(env).depth === 0) continue;
    // The outermost is the one that no session has started.
    narrowed = { ...narrowed, rules: env[variableOf('rules')] };
    const rules = Object.fromEntries(RULE_VARIABLES.map((name) => [name, env[name]]));
    narrowed = { ...narrowed, ...strictest(narrowed, loadSettings({ ...host, argv: [], env: rules })) };
  }
  return narrowed;
}
