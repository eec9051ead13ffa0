import { randomUUID } from 'node:crypto';
import type { HubRef } from '../schema/store.ts';

/** Names the incarnation of the hub that added the command: once that is over, nothing there waits for it any more. */
export function newCommandId({ hub, fence }: HubRef): string {
  return `${hub}.${String(fence)}.${randomUUID()}`;
}

export function addedBy(commandId: string): HubRef | undefined {
  const [, hub, fence] = /^(.*)\.(\d+)\.[^.]*$/.exec(commandId) ?? [];
  return hub === undefined ? undefined : { hub, fence: Number(fence) };
}
