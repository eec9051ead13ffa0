import { openAudit } from '../../audit/audit-log.ts';
import { misspeltVariables } from '../../config/misspelt-variables.ts';
import type { Settings } from '../../config/load-settings.ts';
import { Driver } from '../../driver/driver.ts';
import { ProcessOwner } from '../../driver/process-owner.ts';
import { systemClock } from '../../engine/clock.ts';
import { Engine } from '../../engine/engine.ts';
import { createTranscripts } from '../../transcripts/disk-sessions.ts';
import { findHolder } from '../../transcripts/live-sessions.ts';
import { serveOverStdio } from '../../transports/stdio.ts';
import { createLog } from './logger.ts';

export interface Surroundings {
  env: NodeJS.ProcessEnv;
  cwd: string;
  configDir: string;
  version: string;
  stderr: (text: string) => void;
}

export interface RunningServer {
  /** Ends sessions, processes and the connection. Twice is harmless. */
  close(): Promise<void>;
  preload(): void;
}

/** Puts the parts together and serves until it is closed. */
export function serve(settings: Settings, { env, cwd, configDir, version, stderr }: Surroundings): RunningServer {
  const log = createLog(settings.logLevel, stderr);
  const warn = (line: string): void => log('warn', line);
  for (const { name, nearest } of misspeltVariables(env)) warn(`${name} is not a setting; did you mean ${nearest}?`);
  const audit = openAudit({ path: settings.auditLog, warn });
  const owner = new ProcessOwner({ stateDir: settings.stateDir, warn });
  const driver = new Driver(owner);
  const engine = new Engine(settings, cwd, {
    clock: systemClock,
    driver,
    transcripts: { ...createTranscripts({ configDir }), findHolder: (id, isOurs) => findHolder(configDir, id, isOurs) },
    audit,
    baseEnv: env,
    log,
  });
  const connection = serveOverStdio(engine, { name: 'claude-code-mcp', version }, (error) =>
    log('debug', `protocol: ${error.message}`),
  );
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await engine.close();
    await owner.release();
    await connection.close();
    await audit.close();
  };
  return {
    close: () => (closing ??= close()),
    preload() {
      owner.sweep().catch((error: unknown) => warn(String(error)));
      driver.preload().catch((error: unknown) => log('debug', `preload: ${String(error)}`));
    },
  };
}
