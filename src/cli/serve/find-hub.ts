import { setTimeout as pause } from 'node:timers/promises';
import { withDepthOfAncestors, givenSettings, type Settings, type SettingsSource } from '../../config/load-settings.ts';
import { enclosingSession } from '../../platform/ancestors.ts';
import { childEnvironment } from '../../config/child-environment.ts';
import { isKeeperAlive, readHubRecord, type HubRecord } from '../../config/hub-record.ts';
import { SettingsError } from '../../config/bad-input.ts';
import {
  askHub,
  attachToHub,
  HubRefused,
  HubUnavailable,
  type AttachedHub,
} from '../../transports/attach/connect-hub.ts';
import { placeOf, type AttachRequest } from '../../transports/attach/protocol.ts';
import { createLog } from './log.ts';

/** How long a client waits for the hub of sessions that go on without one. */
const HUB_BACK_MS = 10_000;
const LOOK_AGAIN_MS = 100;

export interface HubClientContext extends SettingsSource {
  readonly version: string;
  readonly stderr: (text: string) => void;
  /** What sessions inherit. */
  readonly inherited: NodeJS.ProcessEnv;
}

/**
 * The hub that this client belongs to. Without one the client is served from here, and told why; if the operator
 * requires a hub, that ends the start.
 */
export async function findHub(
  record: HubRecord | undefined,
  settings: Settings,
  context: HubClientContext,
  /** What the client was told about the server is only valid for this version. */
  announcedVersion?: string,
): Promise<AttachedHub | undefined> {
  try {
    const hub = await attached(record, settings, context);
    if (announcedVersion === undefined || hub.version === announcedVersion) return hub;
    hub.socket.destroy();
    throw new HubUnavailable(`it is version ${hub.version}, and this client was told ${announcedVersion}`);
  } catch (error) {
    if (!(error instanceof HubUnavailable)) throw error;
    if (settings.hub === 'require') throw new SettingsError(`The hub is required (--hub require): ${error.message}.`);
    createLog(settings.logLevel, context.stderr)(
      'warn',
      `not attached to the hub: ${error.message}; serving without it`,
    );
    return undefined;
  }
}

/**
 * While processes are kept for a hub, there will be one again: a client served without it would not see its sessions.
 * It is waited for, but not for long.
 */
async function attached(
  record: HubRecord | undefined,
  settings: Settings,
  context: HubClientContext,
): Promise<AttachedHub> {
  const { stateDir } = settings;
  const deadline = performance.now() + HUB_BACK_MS;
  for (let found = record; ; found = readHubRecord(stateDir)) {
    try {
      if (!found) throw new HubUnavailable('none is running; "claude-code-mcp hub start" starts one');
      return await attachToHub(found, stateDir, attachRequest(settings, context));
    } catch (error) {
      const mayComeBack = error instanceof HubUnavailable && !(error instanceof HubRefused) && isKeeperAlive(stateDir);
      if (!mayComeBack || performance.now() > deadline) throw error;
    }
    await pause(LOOK_AGAIN_MS);
  }
}

/** The hub after a restart: it may be elsewhere, and have a different version. */
export async function reconnectToHub(settings: Settings, context: HubClientContext): Promise<AttachedHub> {
  const record = readHubRecord(settings.stateDir);
  if (!record) throw new HubUnavailable('it is not running');
  return attachToHub(record, settings.stateDir, attachRequest(settings, context));
}

/** On a connection of its own: whoever answers there would answer elsewhere too. */
export async function hubResponds({ stateDir }: Settings): Promise<boolean> {
  const record = readHubRecord(stateDir);
  if (!record) return false;
  try {
    await askHub(record, stateDir, 'status');
    return true;
  } catch (error) {
    return error instanceof HubRefused;
  }
}

/** What the hub needs to know about this process. */
export function attachRequest(settings: Settings, context: HubClientContext): AttachRequest {
  const { approvals, allowedDirs, denyOptions, maxTurns, maxBudgetUsd, allowBypass, sandbox, sandboxNetwork } =
    settings;
  const { depth, maxDepth } = withDepthOfAncestors(settings);
  return {
    kind: 'attach',
    place: placeOf(settings, context),
    version: context.version,
    toolset: settings.toolset,
    cwd: context.cwd,
    rules: {
      approvals,
      allowedDirs,
      denyOptions,
      maxTurns,
      maxBudgetUsd,
      allowBypass,
      sandbox,
      sandboxNetwork,
      maxDepth,
      depth,
    },
    given: givenSettings(context, settings),
    env: childEnvironment(context.inherited, {}),
    inside: enclosingSession(context.env),
  };
}
