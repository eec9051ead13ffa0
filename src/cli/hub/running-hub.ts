import { readHubRecord, type HubRecord } from '../../config/hub-record.ts';
import { askHub, HubUnavailable } from '../../transports/attach/connect-hub.ts';
import type { HubStatus } from '../../transports/attach/protocol.ts';

export type HubState =
  | { readonly kind: 'running'; readonly record: HubRecord; readonly status: HubStatus }
  | { readonly kind: 'stopped' }
  /** There is a record, but nothing responds. */
  | { readonly kind: 'unreachable'; readonly record: HubRecord; readonly why: string };

export async function hubState(stateDir: string): Promise<HubState> {
  const record = readHubRecord(stateDir);
  if (!record) return { kind: 'stopped' };
  try {
    return { kind: 'running', record, status: await askHub<HubStatus>(record, stateDir, 'status') };
  } catch (error) {
    if (!(error instanceof HubUnavailable)) throw error;
    return { kind: 'unreachable', record, why: error.message };
  }
}

/** The record of a hub that responds, or undefined after reporting that there is none. */
export async function requireHub(stateDir: string): Promise<HubRecord | undefined> {
  const state = await hubState(stateDir);
  if (state.kind === 'running') return state.record;
  process.stderr.write(
    `No hub is running${state.kind === 'unreachable' ? ` (${state.why})` : ''}: claude-code-mcp hub start\n`,
  );
  return undefined;
}
