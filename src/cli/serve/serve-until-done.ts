import process from 'node:process';
import type { Settings } from '../../config/load-settings.ts';
import { serve, type ServeContext } from './serve.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Shut-down promises five seconds; whatever hangs then must not hold the process. */
const LAST_MOMENT_MS = 4_800;

/** Serves until the client goes or somebody says stop; then nothing is left behind. */
export async function serveUntilDone(settings: Settings, context: ServeContext): Promise<number> {
  quietWarnings();
  const server = serve(settings, context);
  let exitCode = 0;
  await new Promise<void>((resolve) => {
    const stop = (): void => {
      setTimeout(() => process.exit(exitCode), LAST_MOMENT_MS).unref();
      server.close().then(resolve, resolve);
    };
    for (const signal of SIGNALS) process.on(signal, stop);
    process.stdin.once('end', stop);
    process.stdin.once('close', stop);
    process.stdout.on('error', stop);
    // A client that does not read our log must not end us with it.
    process.stderr.on('error', () => undefined);
    process.on('uncaughtException', (error) => {
      exitCode = 1;
      context.stderr(`claude-code-mcp error: stopping after an unexpected error: ${error.stack ?? error.message}\n`);
      stop();
    });
    // The SDK lets promises of a dying process fall; that is no reason to take the other sessions down.
    process.on('unhandledRejection', (reason) => {
      if (settings.logLevel === 'debug')
        context.stderr(`claude-code-mcp debug: a promise was dropped: ${String(reason)}\n`);
    });
  });
  process.exit(exitCode);
}

/** Node prints warnings of libraries on stderr, where a user would take them for trouble of ours. */
function quietWarnings(): void {
  process.removeAllListeners('warning');
  process.on('warning', () => undefined);
}
