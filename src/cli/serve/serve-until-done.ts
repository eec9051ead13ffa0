import process from 'node:process';
import type { Settings } from '../../config/load-settings.ts';
import { serve, type ServeContext } from './serve.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Shutdown takes at most five seconds: whatever hangs by then must not keep the process alive. */
const FORCE_EXIT_MS = 4_800;

/** Serves until the client disconnects or a signal arrives, then cleans up and exits. */
export async function serveUntilDone(settings: Settings, context: ServeContext): Promise<number> {
  quietWarnings();
  const server = serve(settings, context);
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

/** Node prints library warnings on stderr, where users would mistake them for errors of this server. */
function quietWarnings(): void {
  process.removeAllListeners('warning');
  process.on('warning', () => undefined);
}
