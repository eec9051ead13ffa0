import path from 'node:path';
import { ineffectiveSettings } from '../../config/load-settings.ts';
import { withoutSecrets } from '../../config/secret-variables.ts';
import { startHub } from '../../hub/hub.ts';
import { HubRunsAlready } from '../../hub/instance.ts';
import { createLog } from '../serve/log.ts';
import type { HubCommandContext } from './run-hub.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Whatever hangs by then must not keep the process alive. */
const FORCE_EXIT_MS = 9_500;

/** A failure as far as a service manager is concerned, which then restarts the hub. */
const START_AGAIN = 75;

/** `claude-code-mcp hub`: runs until a signal, or until it is stopped. */
export async function runInForeground({
  settings,
  version,
  program,
  argv: given,
  ...host
}: HubCommandContext): Promise<number> {
  process.removeAllListeners('warning');
  process.on('warning', () => undefined);
  const log = createLog(settings.logLevel, (text) => process.stderr.write(text));
  for (const { what, remedy } of ineffectiveSettings(host.env, settings)) log('warn', `${what}. ${remedy}`);
  // Its terminal or its log file may go away; the hub stays.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  let exitCode = 0;
  let processes: 'end' | 'keep' = 'end';
  try {
    // No one's project: a session works where its client says.
    const dashboardDir = path.join(path.dirname(program), 'dashboard');
    const keeperFile = path.join(path.dirname(program), 'keeper.mjs');
    const { argv } = withoutSecrets({ argv: given, env: {} });
    const hub = await startHub(settings, { ...host, argv, cwd: host.homedir, log, version, dashboardDir, keeperFile });
    process.stdout.write(`claude-code-mcp hub ${version}: ${hub.url} (pid ${String(process.pid)})\n`);
    await new Promise<void>((resolve) => {
      for (const signal of SIGNALS) process.on(signal, () => resolve());
      // Only for a parent that opened a channel to it, such as a demo: without one this never happens.
      process.on('disconnect', () => resolve());
      // It may have gone while the hub was starting.
      if (process.send && !process.connected) resolve();
      void hub.stopRequested.then((how) => {
        if (how === 'restart') exitCode = START_AGAIN;
        if (how !== 'stop') processes = 'keep';
        resolve();
      });
      process.on('uncaughtException', (error) => {
        exitCode = 1;
        processes = 'keep';
        log('error', `stopping after an unexpected error: ${error.stack ?? error.message}`);
        resolve();
      });
      process.on('unhandledRejection', (reason) => log('debug', `unhandled rejection: ${String(reason)}`));
    });
    setTimeout(() => process.exit(exitCode), FORCE_EXIT_MS).unref();
    await hub.close(processes);
  } catch (error) {
    if (!(error instanceof HubRunsAlready)) throw error;
    process.stderr.write(`claude-code-mcp: ${error.message}; see "claude-code-mcp hub status".\n`);
    return 1;
  }
  process.exit(exitCode);
}
