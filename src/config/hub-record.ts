import { readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * For Node when it starts a hub, which runs for weeks next to everything else on the machine: its objects are
 * short-lived, and V8 would let several times the live size pile up before it collects.
 */
export const HUB_NODE_FLAGS = ['--optimize-for-size'] as const;

/** What a running hub says about itself in `<state dir>/hub.json`. */
export interface HubRecord {
  readonly pid: number;
  /** Where it listens for HTTP. */
  readonly url: string;
  /** Path of its socket; on Windows the name of its pipe. */
  readonly socket: string;
  readonly version: string;
}

/** Set if a service manager runs the hub, which restarts it when it exits with a failure. */
export const SERVICE_VARIABLE = 'CLAUDE_CODE_MCP_SERVICE';

export function hubRecordFile(stateDir: string): string {
  return path.join(stateDir, 'hub.json');
}

/** What both ends of the socket must know. */
export function hubSecretFile(stateDir: string): string {
  return path.join(stateDir, 'hub.secret');
}

/** Held open by a client while it makes a request, so that the hub can tell which process it is. */
export function hubClaimFile(stateDir: string, nonce: string): string {
  return path.join(stateDir, `hub-claim-${nonce}`);
}

/** Whether processes are kept for a hub, which may be gone at the moment. */
export function isKeeperAlive(stateDir: string): boolean {
  try {
    const { pid } = JSON.parse(readFileSync(path.join(stateDir, 'hub', 'keeper-1.json'), 'utf8')) as { pid: number };
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Undefined if no hub is running, according to its file; one that was killed leaves it behind. */
export function readHubRecord(stateDir: string): HubRecord | undefined {
  try {
    const { pid, url, socket, version } = JSON.parse(readFileSync(hubRecordFile(stateDir), 'utf8')) as HubRecord;
    const isWhole = Number.isSafeInteger(pid) && [url, socket, version].every((field) => typeof field === 'string');
    return isWhole ? { pid, url, socket, version } : undefined;
  } catch {
    return undefined;
  }
}
