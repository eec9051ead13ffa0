import path from 'node:path';
import { openAudit } from '../audit/audit-log.ts';
import type { Settings } from '../config/load-settings.ts';
import { Driver } from '../driver/driver.ts';
import { ProcessOwner } from '../driver/process-owner.ts';
import { createTranscripts } from '../transcripts/disk-sessions.ts';
import { findHolder } from '../transcripts/live-sessions.ts';
import { globalClaudeFile, projectTrust } from '../transcripts/project-trust.ts';
import { lockSession } from '../transcripts/session-lock.ts';
import { SystemClock } from './clock.ts';
import { Engine } from './engine.ts';
import type { EngineServices } from './services.ts';

/** What an engine takes from the program it lives in. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  /** Where sessions work when nobody names a directory. */
  readonly cwd: string;
  /** Where Claude Code keeps what it knows of this user. */
  readonly configDir: string;
  readonly log: EngineServices['log'];
}

export interface HostedEngine {
  /** Closing it ends its sessions, their processes and the services around it. */
  readonly engine: Engine;
  /** Ends what an earlier engine left behind when it was killed. */
  sweep(): void;
  /** Loads the Agent SDK, and warms a spare where that is wanted, before the first session needs it. */
  preload(): void;
}

/** An engine with the services of this machine: real processes, real transcripts, an audit log. */
export function hostEngine(settings: Settings, { env, cwd, configDir, log }: Surroundings): HostedEngine {
  const warn = (line: string): void => log('warn', line);
  const audit = openAudit({ path: settings.auditLog, warn });
  const owner = new ProcessOwner({ stateDir: settings.stateDir, warn });
  const driver = new Driver(owner);
  const globalFile = globalClaudeFile({ env, homedir: path.dirname(configDir) });
  const engine = new Engine(settings, cwd, {
    clock: new SystemClock(),
    driver,
    transcripts: {
      ...createTranscripts({ configDir }),
      findHolder: (id, isOurs) => findHolder(configDir, id, isOurs),
      lock: (id) => lockSession(path.join(configDir, 'claude-code-mcp', 'locks'), id),
    },
    audit,
    configDir,
    isTrusted: async (directory) => (await projectTrust(directory, globalFile)).trust === 'own',
    baseEnv: env,
    log,
    async release() {
      await driver.close();
      await owner.release();
      await audit.close();
    },
  });
  return {
    engine,
    sweep() {
      owner.sweep().catch((error: unknown) => warn(String(error)));
    },
    preload() {
      driver.preload().catch((error: unknown) => log('debug', `preload: ${String(error)}`));
      if (settings.prewarm) {
        const keepSpare = async (): Promise<void> =>
          driver.keepSpare(await engine.plainLaunch(), (line) => log('debug', line));
        keepSpare().catch((error: unknown) => log('debug', `prewarm: ${String(error)}`));
      }
    },
  };
}
