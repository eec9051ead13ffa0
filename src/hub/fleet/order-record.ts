import type { Settings } from '../../config/load-settings.ts';
import type { Order, OrderedBy } from '../../engine/elsewhere.ts';
import { RULE_SETTINGS } from '../../engine/rule-intersection.ts';
import { DomainError, ERROR_CODES, messageOf, type ErrorCode } from '../../errors/errors.ts';
import { ownerRecord } from '../../schema/records.ts';
import type { StoredCommand } from '../../schema/store.ts';

/** The contents of a stored command: what to do, for whom, and under which rules. */
export interface OrderRecord {
  readonly order: Order;
  readonly principal: OrderedBy['principal'];
  readonly rules: Partial<Settings>;
}

/** How a command succeeded. */
export interface OrderResult {
  readonly value: unknown;
}

export function orderBody(order: Order, { principal, settings }: OrderedBy): Record<string, unknown> {
  const rules = Object.fromEntries(RULE_SETTINGS.map((name) => [name, settings[name]]));
  return JSON.parse(JSON.stringify({ order, principal, rules })) as Record<string, unknown>;
}

export function orderOf({ id, principal, body }: StoredCommand): OrderRecord {
  const { order, rules } = body as { order?: Order; rules?: Partial<Settings> };
  if (!order || !rules) throw new DomainError('INTERNAL', `Command ${id} is not supported by this version.`);
  return { order, rules, principal: { id: principal, ...ownerRecord.parse(body['principal']) } };
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
