import process from 'node:process';
import type { Settings } from '../../config/load-settings.ts';
import { Bridge } from '../../transports/attach/bridge.ts';
import type { AttachedHub } from '../../transports/attach/connect-hub.ts';
import type { Opening } from '../../transports/opening.ts';
import { hubResponds, reconnectToHub, type HubClientContext } from './find-hub.ts';
import { createLog } from './log.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Passes the client through to the hub until it disconnects or a signal arrives; its sessions stay in the hub. */
export async function bridgeUntilDone(
  hub: AttachedHub,
  settings: Settings,
  context: HubClientContext,
  opening: Opening | undefined,
): Promise<number> {
  const bridge = new Bridge({
    input: process.stdin,
    output: process.stdout,
    toolset: settings.toolset,
    opening,
    reattach: () => reconnectToHub(settings, context),
    responds: () => hubResponds(settings),
    log: createLog(settings.logLevel, context.stderr),
  });
  await new Promise<void>((resolve) => {
    for (const signal of SIGNALS) process.on(signal, () => resolve());
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    process.stdout.on('error', () => resolve());
    process.stderr.on('error', () => undefined);
    bridge.start(hub);
  });
  bridge.close();
  process.exit(0);
}
