/**
 * The rules for a write, without a database: from the changes and the rows they touch to the resulting rows, or to the
 * reason for refusing. The store loads what `needsOf` names, locks it, and saves what `plan` returns.
 */

import { isDeepStrictEqual } from 'node:util';
import { DomainError } from '../errors/errors.ts';
import type {
  Change,
  HubRef,
  StoredCommand,
  StoredEvent,
  StoredGrant,
  StoredLease,
  StoredMessage,
  StoredRemoval,
  StoredRequest,
  StoredSession,
  StoredToken,
} from '../schema/store.ts';
import type { RuleContent } from '../schema/standing-rules.ts';
import { StoreConflict } from './contract.ts';
import { appended, EMPTY_BOOK, type EventBook } from './event-bounds.ts';
import { isSameIncarnation, isUnderWay, toJson } from './row-facts.ts';

export interface Needs {
  readonly sessions: Set<string>;
  readonly requests: Set<string>;
  readonly commands: Set<string>;
  readonly commandKeys: Map<string, CommandKey>;
  readonly grants: Set<string>;
}

export interface CommandKey {
  readonly principal: string;
  readonly key: string;
}

export interface SessionEntry {
  readonly isNew: boolean;
  readonly runsOn: HubRef;
  readonly book: EventBook;
}

export interface Loaded {
  /** The lease of the writing hub. */
  readonly lease: StoredLease | undefined;
  readonly sessions: Map<string, SessionEntry>;
  readonly requests: Map<string, StoredRequest>;
  /** By id. */
  readonly commands: Map<string, StoredCommand>;
  readonly grants: Map<string, StoredGrant>;
}

/** A row in its resulting state. */
export type RowWrite =
  | { readonly table: 'sessions'; readonly row: StoredSession; readonly isNew: boolean }
  | { readonly table: 'books'; readonly sessionId: string; readonly book: EventBook }
  | { readonly table: 'events'; readonly row: StoredEvent; readonly json: string }
  | { readonly table: 'dropped'; readonly sessionId: string; readonly eventIds: readonly number[] }
  | { readonly table: 'messages'; readonly sessionId: string; readonly id: string; readonly row?: StoredMessage }
  | { readonly table: 'requests'; readonly row: StoredRequest }
  | { readonly table: 'commands'; readonly row: StoredCommand }
  | { readonly table: 'grants'; readonly row: StoredGrant }
  | { readonly table: 'tokens'; readonly row: StoredToken }
  /** Everything that belongs to the session is deleted, except for commands: their keys are remembered. */
  | { readonly table: 'removed'; readonly sessionId: string }
  | { readonly table: 'removals'; readonly row: StoredRemoval }
  /** No row: it was removed. */
  | { readonly table: 'rules'; readonly id: string; readonly row?: RuleContent }
  | { readonly table: 'rule_uses'; readonly id: string; readonly at: number; readonly times: number }
  | { readonly table: 'settings'; readonly key: string; readonly value: string };

export function noNeeds(): Needs {
  return {
    sessions: new Set(),
    requests: new Set(),
    commands: new Set(),
    commandKeys: new Map(),
    grants: new Set(),
  };
}

export function needsOf(changes: readonly Change[]): Needs {
  const needs = noNeeds();
  for (const change of changes) {
    const sessionId = sessionOf(change);
    if (sessionId !== undefined) needs.sessions.add(sessionId);
    if (change.type === 'request.open') needs.requests.add(change.request.id);
    if (change.type === 'request.settle') needs.requests.add(change.requestId);
    if (change.type === 'grant.add') needs.grants.add(change.grant.id);
    if (change.type === 'grant.close') needs.grants.add(change.grantId);
    if (change.type === 'command.finish' || change.type === 'command.withdraw') needs.commands.add(change.commandId);
    if (change.type === 'command.add') {
      const { id, principal, key } = change.command;
      needs.commands.add(id);
      if (key !== undefined) needs.commandKeys.set(commandKey(principal, key), { principal, key });
    }
  }
  return needs;
}

/** Whose session a change belongs to; anyone may add or withdraw a command, or write a token, a rule or a setting. */
export function sessionOf(change: Change): string | undefined {
  switch (change.type) {
    case 'session.put':
      return change.session.id;
    case 'event.append':
      return change.event.sessionId;
    case 'message.put':
      return change.message.sessionId;
    case 'request.open':
      return change.request.sessionId;
    case 'grant.add':
      return change.grant.sessionId;
    case 'session.remove':
    case 'message.delivered':
    case 'request.settle':
    case 'grant.close':
    case 'command.finish':
      return change.sessionId;
    case 'command.add':
    case 'command.withdraw':
    case 'token.put':
    case 'rule.put':
    case 'rule.remove':
    case 'rule.use':
    case 'setting.put':
      return undefined;
  }
}

/** In the order of the changes, each row once. */
export function plan(changes: readonly Change[], by: HubRef | undefined, loaded: Loaded): RowWrite[] {
  const batch = new Batch(loaded);
  for (const change of changes) {
    if (sessionOf(change) !== undefined) checkOwner(change, by, loaded);
    batch.apply(change);
  }
  return batch.rows();
}

/** Also for everything else a hub does in its own name. */
export function checkLease(by: HubRef, lease: StoredLease | undefined): asserts lease is StoredLease {
  if (lease?.fence === by.fence) return;
  throw new StoreConflict('fenced', `Hub ${by.hub} has been restarted since, or was never registered.`);
}

function checkOwner(change: Change, by: HubRef | undefined, { lease, sessions }: Loaded): void {
  if (by === undefined) throw new DomainError('INTERNAL', `A ${change.type} needs the hub that makes it.`);
  checkLease(by, lease);
  const sessionId = sessionOf(change) ?? '';
  const owner = sessions.get(sessionId)?.runsOn ?? (change.type === 'session.put' ? change.session.runsOn : undefined);
  // What was taken here ends here, even if the session has not been recalled since the hub was restarted.
  if (change.type === 'command.finish' && owner?.hub === by.hub) return;
  if (owner) checkRunsOn(sessionId, by, owner);
}

/** For what is stored alongside the rows; the session must exist. */
export function checkSessionOwner(sessionId: string, by: HubRef, { lease, sessions }: Loaded): void {
  checkLease(by, lease);
  const session = sessions.get(sessionId);
  if (!session) throw unknownSession(sessionId);
  checkRunsOn(sessionId, by, session.runsOn);
}

function checkRunsOn(sessionId: string, by: HubRef, owner: HubRef): void {
  if (isSameIncarnation(owner, by)) return;
  throw new StoreConflict('fenced', `Session ${sessionId} runs on hub ${owner.hub} now.`, owner);
}

function unknownSession(id: string): StoreConflict {
  return new StoreConflict('unknownSession', `There is no session ${id}.`);
}

/** The error of a command that was withdrawn before it was taken. */
export const WITHDRAWN = 'withdrawn';

class Batch {
  readonly #loaded: Loaded;
  readonly #rows = new Map<string, RowWrite>();

  constructor(loaded: Loaded) {
    this.#loaded = loaded;
  }

  rows(): RowWrite[] {
    return [...this.#rows.values()];
  }

  apply(change: Change): void {
    const { sessions, requests, commands, grants } = this.#loaded;
    switch (change.type) {
      case 'session.put': {
        const { id, runsOn } = change.session;
        const entry = sessions.get(id) ?? { isNew: true, runsOn, book: EMPTY_BOOK };
        sessions.set(id, entry);
        this.#write(id, { table: 'sessions', row: change.session, isNew: entry.isNew });
        return;
      }
      case 'session.remove': {
        const { sessionId: id, principal, at } = change;
        sessions.delete(id);
        this.#write(id, { table: 'removed', sessionId: id });
        this.#write(id, { table: 'removals', row: { id, principal, at } });
        return;
      }
      case 'event.append':
        this.#append(change.event, change.afterDropped === true);
        return;
      case 'message.put':
        this.#message(change.message.sessionId, change.message.id, change.message);
        return;
      case 'message.delivered':
        this.#message(change.sessionId, change.messageId);
        return;
      case 'request.open':
        this.#session(change.request.sessionId);
        if (requests.has(change.request.id)) return;
        this.#request(change.request);
        return;
      case 'request.settle': {
        const request = requests.get(change.requestId);
        if (request?.sessionId !== change.sessionId) {
          throw new StoreConflict('unknownRequest', `There is no request ${change.requestId} in this session.`);
        }
        const { outcome } = request;
        if (sameJson(outcome, change.outcome)) return;
        if (outcome) {
          const message = `Request ${request.id} was already settled: ${outcome.decision}, by ${outcome.by}.`;
          throw new StoreConflict('settled', message, outcome);
        }
        this.#request({ ...request, outcome: change.outcome });
        return;
      }
      case 'grant.add':
        this.#session(change.grant.sessionId);
        if (!grants.has(change.grant.id)) this.#grant(change.grant);
        return;
      case 'grant.close': {
        const grant = grants.get(change.grantId);
        if (sameJson(grant?.closed, change.closed)) return;
        if (!grant || grant.closed) {
          throw new StoreConflict('outOfStep', `Grant ${change.grantId} is not open.`, grant?.closed);
        }
        this.#grant({ ...grant, closed: change.closed });
        return;
      }
      case 'command.add':
        this.#addCommand({ ...change.command, progress: { status: 'queued' } });
        return;
      case 'command.finish': {
        const command = commands.get(change.commandId);
        if (sameJson(command?.progress, change.progress)) return;
        if (!command || !isUnderWay(command)) {
          throw new StoreConflict('outOfStep', `Command ${change.commandId} is not in progress.`, command?.progress);
        }
        this.#command({ ...command, progress: change.progress });
        return;
      }
      case 'command.withdraw':
        this.#withdraw(change.commandId, change.at);
        return;
      case 'token.put':
        this.#write(change.token.id, { table: 'tokens', row: change.token });
        return;
      case 'rule.put':
        this.#write(change.rule.id, { table: 'rules', id: change.rule.id, row: change.rule });
        return;
      case 'rule.remove':
        this.#write(change.ruleId, { table: 'rules', id: change.ruleId });
        return;
      case 'rule.use':
        this.#write(change.ruleId, { table: 'rule_uses', id: change.ruleId, at: change.at, times: change.times });
        return;
      case 'setting.put':
        this.#write(change.key, { table: 'settings', key: change.key, value: change.value });
        return;
    }
  }

  #append(event: StoredEvent, afterDropped: boolean): void {
    const session = this.#session(event.sessionId);
    const { lastId } = session.book;
    if (event.id <= lastId) return;
    const isNext = event.id === lastId + 1;
    if (!isNext && !afterDropped) {
      throw new StoreConflict('outOfStep', `Event ${event.id} does not follow ${lastId}, the last one stored.`);
    }
    const json = toJson(event.data ?? null);
    const size = Buffer.byteLength(json);
    const before = isNext ? session.book : { ...session.book, droppedThrough: event.id - 1 };
    const book = appended(before, { id: event.id, keep: event.keep, size });
    this.#loaded.sessions.set(event.sessionId, { ...session, book });
    this.#write(`${event.sessionId} ${event.id}`, { table: 'events', row: event, json });
    this.#write(event.sessionId, { table: 'books', sessionId: event.sessionId, book });
  }

  #addCommand(command: StoredCommand): void {
    const known = this.#loaded.commands.get(command.id) ?? this.#commandWithKeyOf(command);
    if (!known) {
      this.#command(command);
      return;
    }
    if (known.sessionId === command.sessionId && sameJson(known.body, command.body)) {
      const { placedOn } = command;
      const isMoved = known.progress.status === 'queued' && placedOn !== undefined && placedOn !== known.placedOn;
      if (isMoved) this.#command({ ...known, placedOn });
      return;
    }
    const message = 'This idempotency key was used for a different command; use a new one.';
    throw new StoreConflict('keyReused', message, known);
  }

  #withdraw(id: string, at: number): void {
    const command = this.#loaded.commands.get(id);
    if (command?.progress.status === 'failed' && command.progress.error === WITHDRAWN) return;
    if (command?.progress.status !== 'queued')
      throw new StoreConflict('begun', `Command ${id} is no longer queued.`, command?.progress);
    this.#command({ ...command, progress: { status: 'failed', at, error: WITHDRAWN } });
  }

  #commandWithKeyOf({ principal, key }: StoredCommand): StoredCommand | undefined {
    if (key === undefined) return undefined;
    return [...this.#loaded.commands.values()].find((other) => other.principal === principal && other.key === key);
  }

  #session(id: string): SessionEntry {
    const session = this.#loaded.sessions.get(id);
    if (!session) throw unknownSession(id);
    return session;
  }

  /** No row: it has been delivered. */
  #message(sessionId: string, id: string, row?: StoredMessage): void {
    this.#session(sessionId);
    this.#write(`${sessionId} ${id}`, { table: 'messages', sessionId, id, ...(row && { row }) });
  }

  #request(row: StoredRequest): void {
    this.#loaded.requests.set(row.id, row);
    this.#write(row.id, { table: 'requests', row });
  }

  #command(row: StoredCommand): void {
    this.#loaded.commands.set(row.id, row);
    this.#write(row.id, { table: 'commands', row });
  }

  #grant(row: StoredGrant): void {
    this.#loaded.grants.set(row.id, row);
    this.#write(row.id, { table: 'grants', row });
  }

  /** Rewriting a row moves it to the position of its last change. */
  #write(key: string, write: RowWrite): void {
    this.#rows.delete(`${write.table} ${key}`);
    this.#rows.set(`${write.table} ${key}`, write);
  }
}

function commandKey(principal: string, key: string): string {
  return JSON.stringify([principal, key]);
}

/** Stored values have lost their undefined fields. */
function sameJson(stored: unknown, given: unknown): boolean {
  return isDeepStrictEqual(stored, given === undefined ? undefined : JSON.parse(JSON.stringify(given)));
}
