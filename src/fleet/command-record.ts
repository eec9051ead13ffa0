import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/load-settings.ts';
import { RULE_SETTINGS } from '../engine/rules/rule-intersection.ts';
import type { CommandedBy } from '../engine/session/elsewhere.ts';
import { DomainError, ERROR_CODES, messageOf, type ErrorCode } from '../errors/errors.ts';
import { Command } from '../schema/commands.ts';
import { ownerRecord } from '../schema/records.ts';
import type { StoredCommand, HubRef } from '../schema/store.ts';

/** The contents of a stored command: what to do, for whom, and under which rules. */
export interface CommandRecord {
  readonly command: Command;
  readonly principal: CommandedBy['principal'];
  readonly rules: Partial<Settings>;
}

/** How a command succeeded. */
export interface CommandResult {
  readonly value: unknown;
}

export function commandBody(command: Command, { principal, settings }: CommandedBy): Record<string, unknown> {
  const rules = Object.fromEntries(RULE_SETTINGS.map((name) => [name, settings[name]]));
  return JSON.parse(JSON.stringify({ command, principal, rules })) as Record<string, unknown>;
}

export function commandOf({ id, principal, body }: StoredCommand): CommandRecord {
  const { success, data: command } = Command.safeParse(body['command']);
  const { rules } = body as { rules?: Partial<Settings> };
  if (!success || !rules) throw new DomainError('INTERNAL', `Command ${id} is not supported by this version.`);
  return { command, rules, principal: { ...ownerRecord.parse(body['principal']), id: principal } };
}

export function errorText(error: unknown): string {
  const code: ErrorCode = error instanceof DomainError ? error.code : 'INTERNAL';
  return JSON.stringify({ code, message: messageOf(error) });
}

export function errorFrom(text: string): DomainError {
  try {
    const { code, message } = JSON.parse(text) as { code: ErrorCode; message: string };
    if (ERROR_CODES.includes(code)) return new DomainError(code, message);
  } catch {
    // Not one of ours: reported as is.
  }
  return new DomainError('INTERNAL', text);
}

/** Names the incarnation of the hub that added the command: once that is over, nothing there waits for it any more. */
export function newCommandId({ hub, fence }: HubRef): string {
  return `${hub}.${String(fence)}.${randomUUID()}`;
}

export function addedBy(commandId: string): HubRef | undefined {
  const [, hub, fence] = /^(.*)\.(\d+)\.[^.]*$/.exec(commandId) ?? [];
  return hub === undefined ? undefined : { hub, fence: Number(fence) };
}
