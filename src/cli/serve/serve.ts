import type { Host } from '../../config/host.ts';
import { misspeltVariables, type Settings } from '../../config/load-settings.ts';
import { hostEngine } from '../../engine/engine-host.ts';
import type { Opening } from '../../transports/opening.ts';
import { serveOverStdio } from '../../transports/stdio.ts';
import { withinEnclosingRules } from './enclosing-rules.ts';
import { createLog } from './log.ts';

export interface ServeContext extends Host {
  version: string;
  stderr: (text: string) => void;
  /** What the client was already told before the rest of the server was loaded. */
  opening?: Opening | undefined;
}

export interface RunningServer {
  /** Ends sessions, processes and the connection. Idempotent. */
  close(): Promise<void>;
}

/** Wires everything up and serves until closed. */
export function serve(settings: Settings, context: ServeContext): RunningServer {
  const { version, stderr, opening, ...host } = context;
  const log = createLog(settings.logLevel, stderr);
  for (const { name, nearest } of misspeltVariables(host.env))
    log('warn', `${name} is not a setting; did you mean ${nearest}?`);
  const hosted = hostEngine(withinEnclosingRules(settings, host), { ...host, log });
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
