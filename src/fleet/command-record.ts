import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/load-settings.ts';
import { RULE_SETTINGS } from '../engine/rules/rule-intersection.ts';
import type { CommandedBy } from '../engine/elsewhere/elsewhere.ts';
import { DomainError, ERROR_CODES, isUnavailable, messageOf, type ErrorCode } from '../errors/errors.ts';
import { Command } from '../schema/commands.ts';
import { ownerRecord } from '../schema/records.ts';
import type { StoredCommand, HubRef, CommandProgress } from '../schema/store.ts';
import { writeReliably, nextWake } from '../store/wake-ups.ts';
import { StoreConflict, StoreUncertain, type Store, type StoreNews } from '../store/contract.ts';
import { WITHDRAWN } from '../store/plan.ts';

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

function errorFrom(text: string): DomainError {
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

/** How often the store may fail to answer before the caller is told. */
const MAX_FAILURES = 3;
/** Longer than Claude Code may take to start. */
const MAX_DURATION_MS = 600_000;
const WHEN_BACK = 'Check the session when the store is back.';

/** Why a command that has not been picked up by now is no longer waited for. */
type GiveUp = (waitedMs: number) => Promise<NotBegun | undefined>;

/** Puts a command into its queue and waits for its outcome. */
export async function sendCommand(
  store: Store,
  command: Omit<StoredCommand, 'progress'>,
  giveUp: GiveUp,
): Promise<unknown> {
  // It may be carried out before its writer has the store's response.
  const { woken, stop } = nextWake(store, isEnd);
  try {
    await enqueue(store, command);
    await woken;
  } finally {
    stop();
  }
  return outcomeOf(store, command.id, giveUp);
}

function isEnd({ ended }: StoreNews): boolean {
  return ended;
}

async function enqueue(store: Store, command: Omit<StoredCommand, 'progress'>): Promise<void> {
  await writeReliably(store, [{ type: 'command.add', command }]).catch((error: unknown) => {
    // A caller that sent it again would have it done twice.
    throw error instanceof StoreUncertain ? unknown(`${error.message} ${WHEN_BACK}`) : error;
  });
}

/** The outcome of a command. One that is given up is withdrawn first, so that no one picks it up later. */
async function outcomeOf(store: Store, id: string, giveUp: GiveUp): Promise<unknown> {
  const begun = performance.now();
  const look = async (): Promise<CommandResult | undefined> => {
    const progress = (await store.command(id))?.progress;
    if (!progress) throw unknown('The store has lost it.');
    const ended = resultOf(progress);
    if (ended) return ended;
    const waited = performance.now() - begun;
    const reason = progress.status === 'queued' ? await giveUp(waited) : undefined;
    if (reason && (await withdraw(store, id))) throw reason;
    if (waited > MAX_DURATION_MS) throw unknown('It was started and has not finished.');
    return undefined;
  };
  return (await lookUntil(store, look, isEnd)).value;
}

/** Looks whenever something was stored. A briefly unavailable store is tried again. */
async function lookUntil<T>(
  store: Store,
  look: () => Promise<T | undefined>,
  concerns?: (news: StoreNews) => boolean,
): Promise<T> {
  for (let failures = 0; ;) {
    const { woken, stop } = nextWake(store, concerns);
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
      failures = 0;
      await woken;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (++failures >= MAX_FAILURES) throw unknown(`${messageOf(error)} ${WHEN_BACK}`);
      await woken;
    } finally {
      stop();
    }
  }
}

/** What the store itself says while it is unavailable; errors about a command are `CommandError`s. */
function isAway(error: unknown): boolean {
  return !(error instanceof CommandError) && isUnavailable(error);
}

/** The outcome of a command, as opposed to trouble on the way to it. */
class CommandError extends DomainError {}

/** It was never started, and never will be. */
export class NotBegun extends CommandError {
  constructor(why: string) {
    super('UNAVAILABLE', why);
  }
}

/** False if it has been picked up in the meantime. */
async function withdraw(store: Store, commandId: string): Promise<boolean> {
  try {
    await store.write([{ type: 'command.withdraw', commandId, at: Date.now() }]);
    return true;
  } catch (error) {
    if (error instanceof StoreConflict) return false;
    throw error;
  }
}

/** Undefined while it is in progress. */
function resultOf(progress: CommandProgress): CommandResult | undefined {
  switch (progress.status) {
    case 'queued':
    case 'taken':
    case 'carriedOut':
      return undefined;
    case 'done':
      return progress.result as CommandResult;
    case 'failed': {
      // By an attempt of ours whose response was lost.
      if (progress.error === WITHDRAWN) throw new NotBegun('Nobody has taken it in time. Nothing was done; try again.');
      const { code, message } = errorFrom(progress.error);
      throw new CommandError(code, message);
    }
    case 'unknown':
      throw unknown(progress.check);
  }
}

function unknown(check: string): CommandError {
  return new CommandError('UNAVAILABLE', `The outcome is unknown. ${check}`);
}
