import { withoutTextsOf } from '../driver/original.ts';
import type { Decision } from '../driver/permission-ask.ts';
import type { Engine } from '../engine/engine.ts';
import type { Grant, GrantEnd } from '../engine/requests/grants.ts';
import type { StoredStretch } from '../engine/conversation/reading.ts';
import type { EngineNotice } from '../engine/notices.ts';
import type { ArchivedSessions, RecalledSession, SessionArchive } from '../engine/ports.ts';
import { runsElsewhere } from '../engine/session/session-errors.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { SessionRecord } from '../schema/records.ts';
import { KEPT_LONGEST, type SessionEvent } from '../schema/events.ts';
import type { Change, HubRef, StoredEvent } from '../schema/store.ts';
import { StoreConflict, type Store } from '../store/contract.ts';
import { sessionOf } from '../store/plan.ts';
import { isSameIncarnation } from '../store/row-facts.ts';
import { untilReachable } from '../store/until-reachable.ts';
import { recall, unfinishedOn } from '../fleet/take-over.ts';
import {
  decisionOf,
  messageContent,
  outcomeRow,
  recordOfRow,
  requestRow,
  sessionEvent,
  sessionRow,
} from '../fleet/session-codec.ts';
import { WaitingChanges } from './waiting-changes.ts';

/** Changes that no one waits for are batched for this long: each write costs a disk flush, which the next one waits for. */
const GATHER_MS = 40;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** Failed starts of which something may still be reported. */
const MAX_REMOVED = 1_000;
/** A transaction holds others up. */
const MAX_CHANGES = 500;

/** How many events are read at once for someone who looks far back. */
const EVENTS_AT_ONCE = 1_000;

export interface JournalOptions {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
  readonly now: () => number;
  readonly log: (level: 'warn' | 'error', line: string) => void;
  /** A new incarnation of this hub has started: this one may no longer write. */
  readonly onFenced: () => void;
}

/**
 * Whether others may join it before it is written: anyone reporting it waits for it first, and a killed hub loses no more
 * than the last words. What a tool was asked to do and what it did is not among them.
 */
function isGathered(notice: EngineNotice): boolean {
  if (notice.kind === 'event') return !isToolUse(notice.event);
  return notice.kind === 'changed';
}

function isToolUse({ body }: SessionEvent): boolean {
  return body.kind === 'message' && body.blocks.some((block) => 'toolUseId' in block);
}

interface Waiting {
  /** Resolved when everything up to this notice is stored. */
  readonly upTo: number;
  readonly resolve: () => void;
  /** Missing for one that waits however long the store is unavailable. */
  readonly reject?: (error: unknown) => void;
}

/**
 * Writes what happens in an engine to the store, in order. Anyone about to report it waits for `stored` first, so that
 * nothing is reported that a crash could undo.
 */
export class Journal implements SessionArchive {
  readonly #options: JournalOptions;
  readonly #changes = new WaitingChanges((id) => this.#engine?.droppedThrough(id) ?? 0);
  /** Sessions whose rows are out of date; with their last record if they are no longer loaded. */
  readonly #touched = new Map<string, SessionRecord | undefined>();
  /** A request that a rule refused at once was never visible to anyone. */
  readonly #openRequests = new Set<string>();
  readonly #messages = new Set<string>();
  /** By session, how far its process was read when everything read so far was last written. */
  readonly #positions = new Map<string, { readonly run: string; readonly line: number }>();
  /** Sessions whose start failed: what their processes still report is not stored. */
  readonly #removed = new Set<string>();
  #engine: Engine | undefined;
  #noticed = 0;
  #written = 0;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Why the store cannot be reached. */
  #failure: string | undefined;
  #wakeEarly: () => void = () => undefined;
  #closed = false;
  #gathering: NodeJS.Timeout | undefined;
  /** Someone is waiting for what is not written yet, or it must not be lost. */
  #isUrgent = false;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** From now on everything that happens in the engine is written. */
  follow(engine: Engine): void {
    this.#engine = engine;
    engine.stream.subscribe((notice) => this.#note(notice));
  }

  stored(): Promise<void> {
    if (this.#written >= this.#noticed) return Promise.resolve();
    // While the store is unavailable, a call is not kept waiting for it.
    if (this.#failure !== undefined) return Promise.reject(notStored(this.#failure));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ upTo: this.#noticed, resolve, reject });
      this.#write(Promise.resolve());
    });
  }

  everStored(): Promise<void> | undefined {
    if (this.#written >= this.#noticed) return undefined;
    return new Promise((resolve) => this.#waiting.push({ upTo: this.#noticed, resolve }));
  }

  checkReachable(): void {
    if (this.#failure !== undefined) throw notBegun(this.#failure);
  }

  /** Whether the store accepted the last write. */
  get isReachable(): boolean {
    return this.#failure === undefined;
  }

  /** How many changes the store has not accepted yet. */
  get waiting(): number {
    return this.#changes.length;
  }

  async events(sessionId: string, after: number): Promise<StoredStretch> {
    const { events, droppedThrough } = await this.#options.store.events(sessionId, { after, limit: EVENTS_AT_ONCE });
    return { events: events.map(sessionEvent), droppedThrough };
  }

  async recall(sessionId: string): Promise<RecalledSession | undefined> {
    // It may have been dropped a moment ago, with its last changes still on their way.
    await this.stored();
    const recalled = await recall(sessionId, {
      ...this.#options,
      checkCanRun: async (row) => this.#engine?.fleet.checkCanRun(row),
    });
    for (const { id } of recalled?.requests ?? []) this.#openRequests.add(id);
    for (const { id } of recalled?.messages ?? []) this.#messages.add(id);
    return recalled;
  }

  async ownerOf(sessionId: string): Promise<string | undefined> {
    return (await this.#options.store.session(sessionId))?.principal;
  }

  async list(query: { readonly principal?: string; readonly limit: number }): Promise<ArchivedSessions> {
    const { items, unreadable = [] } = await this.#options.store.sessions(query);
    const broken = [...unreadable];
    const sessions = items.flatMap((row) => {
      try {
        return [recordOfRow(row)];
      } catch (error) {
        this.#options.log('warn', `session ${row.id} is stored, but cannot be read: ${messageOf(error)}`);
        broken.push(row.id);
        return [];
      }
    });
    return { sessions, unreadable: broken };
  }

  /** Ids of sessions that were working or waiting when this hub last stopped. */
  async unfinished(): Promise<string[]> {
    return (await unfinishedOn(this.#options.store, this.#options.by.hub)).map(({ id }) => id);
  }

  /** Claude Code waits for it: however long the store is unavailable. */
  async decisionOn(requestId: string): Promise<Decision | undefined> {
    const stored = await untilReachable(
      () => this.#options.store.request(requestId),
      () => this.#closed,
    );
    return stored?.outcome && decisionOf(stored.outcome);
  }

  grantAdded(grant: Grant): void {
    this.#add({ type: 'grant.add', grant });
  }

  grantClosed({ id, sessionId }: Grant, closed: GrantEnd): void {
    this.#add({ type: 'grant.close', sessionId, grantId: id, closed });
  }

  /**
   * The outcome of an order is stored together with its effects, never one without the other. Resolves once both are.
   */
  finished(...outcome: readonly Change[]): Promise<void> {
    this.#add(...outcome);
    return this.stored();
  }

  #add(...changes: readonly Change[]): void {
    this.#changes.push(...changes);
    this.#noticed++;
    this.#writeSoon();
  }

  /** Writes what is left, for as long as that takes or `patienceMs` allows. */
  async close(patienceMs: number): Promise<void> {
    const last = this.stored();
    const timer = setTimeout(() => this.#fail('the hub is stopping'), patienceMs);
    await last.catch((error: unknown) => this.#options.log('error', `not stored: ${messageOf(error)}`));
    clearTimeout(timer);
    this.#closed = true;
    clearTimeout(this.#gathering);
    this.#wakeEarly();
    await this.#writing;
  }

  #note(notice: EngineNotice): void {
    if (notice.kind === 'tools') return;
    const { sessionId } = notice;
    // What is dropped here stays in the store.
    if (notice.kind === 'forgotten') {
      this.#positions.delete(sessionId);
      if (this.#touched.has(sessionId)) this.#touched.set(sessionId, notice.record);
      return;
    }
    if (this.#removed.has(sessionId)) return;
    this.#noticed++;
    // Also before its removal, for the changes that are waiting to be written before that.
    this.#touched.set(sessionId, this.#touched.get(sessionId));
    switch (notice.kind) {
      case 'event':
        this.#changes.pushEvent(eventRow(sessionId, notice.event));
        break;
      case 'message': {
        const { id } = notice.message;
        this.#messages.add(id);
        const at = Math.trunc(this.#options.now());
        const content = messageContent(notice.message);
        this.#changes.push({ type: 'message.put', message: { id, sessionId, at, content } });
        break;
      }
      case 'delivered':
        if (this.#messages.delete(notice.messageId))
          this.#changes.push({ type: 'message.delivered', sessionId, messageId: notice.messageId });
        break;
      case 'request':
        this.#openRequests.add(notice.request.id);
        this.#changes.push({ type: 'request.open', request: requestRow(sessionId, notice.request) });
        break;
      case 'settled': {
        const { request, outcome } = notice;
        const wasAsked = this.#openRequests.delete(request.id);
        // What was decided without asking anyone is kept too: Claude Code may not have heard it when this hub is killed.
        if (!wasAsked) this.#changes.push({ type: 'request.open', request: requestRow(sessionId, request) });
        this.#changes.push({
          type: 'request.settle',
          sessionId,
          requestId: request.id,
          outcome: {
            ...outcomeRow(request, outcome, this.#options.now(), this.#options.by.hub),
            ...(!wasAsked && { unasked: true }),
          },
        });
        break;
      }
      case 'start_failed': {
        this.#removed.add(sessionId);
        if (this.#removed.size > MAX_REMOVED) this.#removed.delete(this.#removed.keys().next().value ?? '');
        const at = Math.trunc(this.#options.now());
        this.#changes.push({ type: 'session.remove', sessionId, principal: notice.owner, at });
        break;
      }
      case 'added':
      case 'changed':
        break;
    }
    if (isGathered(notice)) this.#writeLater();
    else this.#writeSoon();
  }

  #writeLater(): void {
    if (!this.#writing) this.#gathering ??= setTimeout(() => this.#writeSoon(), GATHER_MS);
  }

  /** Simultaneous changes go into one transaction. */
  #writeSoon(): void {
    this.#write(new Promise<void>((resolve) => setImmediate(resolve)));
  }

  #write(when: Promise<void>): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#isUrgent = true;
    this.#writing ??= when
      .then(() => this.#writeAll())
      .catch((error: unknown) => this.#options.log('error', `journal: ${messageOf(error)}`))
      .finally(() => {
        this.#writing = undefined;
        if (this.#closed || this.#written >= this.#noticed) return;
        if (this.#isUrgent) this.#writeSoon();
        else this.#writeLater();
      });
  }

  async #writeAll(): Promise<void> {
    while (!this.#closed && this.#written < this.#noticed && this.#isUrgent) {
      this.#isUrgent = false;
      const { changes, upTo } = this.#take();
      await this.#writeReliably(changes);
      if (this.#closed) return;
      this.#written = upTo;
      this.#release();
    }
  }

  /** Rows first: an event of an unknown session would be refused. */
  #take(): { changes: Change[]; upTo: number } {
    const isWhole = this.#changes.length <= MAX_CHANGES;
    const rows = [...this.#touched].flatMap(([id, last]): Change[] => {
      const record = this.#engine?.record(id) ?? last;
      if (!record) return [];
      return [{ type: 'session.put', session: sessionRow(this.#positioned(record, isWhole), this.#options.by) }];
    });
    this.#touched.clear();
    const others = this.#changes.take(MAX_CHANGES);
    if (this.#changes.length > 0) this.#isUrgent = true;
    const upTo = this.#changes.length === 0 ? this.#noticed : this.#written;
    return { changes: [...rows, ...others], upTo };
  }

  /** How far a process was read is stored together with everything that was read, never before it. */
  #positioned(record: SessionRecord, isWhole: boolean): SessionRecord {
    const { position } = record.continuity;
    if (!position) {
      this.#positions.delete(record.id);
      return record;
    }
    if (isWhole) this.#positions.set(record.id, position);
    const stored = this.#positions.get(record.id) ?? { run: position.run, line: 0 };
    return { ...record, continuity: { ...record.continuity, position: stored } };
  }

  /** Until it is stored: a write whose response was lost can simply be resent. */
  async #writeReliably(changes: readonly Change[]): Promise<void> {
    const { store, by } = this.#options;
    for (let pause = FIRST_PAUSE_MS; !this.#closed; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      try {
        await store.write(changes, by);
        this.#failure = undefined;
        return;
      } catch (error) {
        if (!(error instanceof StoreConflict)) this.#fail(messageOf(error));
        else if (error.conflict !== 'fenced') return this.#refused(changes, error);
        else if (error.stored === undefined) return this.#end(error);
        else {
          const left = await this.#withoutTaken(changes).catch(() => changes);
          if (left.length === 0) return;
          const isLess = left.length < changes.length;
          changes = left;
          if (isLess) continue;
        }
        await this.#pause(pause);
      }
    }
  }

  /** One change that the store refuses must not keep the others from being stored. */
  async #refused(changes: readonly Change[], error: StoreConflict): Promise<void> {
    if (changes.length > 1) {
      for (const one of changes) await this.#writeReliably([one]);
      return;
    }
    for (const change of changes) {
      if (change.type === 'event.append' && change.afterDropped !== true && error.conflict === 'outOfStep')
        // The one before it was refused: it counts as dropped, or all that follow would be refused too.
        await this.#writeReliably([{ ...change, afterDropped: true }]);
      else this.#options.log('error', `not stored (${change.type}): ${messageOf(error)}`);
    }
  }

  /** This incarnation of the hub is over. */
  #end(conflict: StoreConflict): void {
    this.#fail(conflict.message);
    this.#options.onFenced();
    this.#closed = true;
  }

  /** Gives up the sessions that another hub has taken over, and returns the changes to all others. */
  async #withoutTaken(changes: readonly Change[]): Promise<readonly Change[]> {
    const taken = new Set<string>();
    for (const id of new Set(changes.map(sessionOf))) {
      if (id !== undefined && (await this.#isTaken(id))) taken.add(id);
    }
    for (const id of taken) this.#giveUp(id);
    return changes.filter((change) => !taken.has(sessionOf(change) ?? ''));
  }

  /** Gives up the sessions that another hub has taken over. */
  async checkOwned(sessionIds: readonly string[]): Promise<void> {
    for (const id of sessionIds) if (await this.#isTaken(id)) this.#giveUp(id);
  }

  async #isTaken(sessionId: string): Promise<boolean> {
    const row = await this.#options.store.session(sessionId);
    return row !== undefined && !isSameIncarnation(row.runsOn, this.#options.by);
  }

  /**
   * Those waiting for it to be stored wait in vain. It is unknown which of the waiters that is, so all have to look
   * again.
   */
  #giveUp(sessionId: string): void {
    const session = this.#engine?.find(sessionId);
    if (!session) return;
    this.#touched.delete(sessionId);
    this.#engine?.fleet.disown(session).catch((error: unknown) => this.#options.log('warn', messageOf(error)));
    this.#rejectWaiting(runsElsewhere(sessionId));
  }

  #release(): void {
    const done = this.#waiting.filter(({ upTo }) => upTo <= this.#written);
    this.#waiting = this.#waiting.filter(({ upTo }) => upTo > this.#written);
    for (const { resolve } of done) resolve();
  }

  #fail(why: string): void {
    const error = notStored(why);
    if (this.#failure === undefined) this.#options.log('warn', error.message);
    this.#failure = why;
    this.#rejectWaiting(error);
  }

  #rejectWaiting(error: DomainError): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ reject }) => reject === undefined);
    for (const { reject } of waiting) reject?.(error);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wakeEarly = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function eventRow(sessionId: string, { id, type, at, body, original }: SessionEvent): StoredEvent {
  return {
    sessionId,
    id,
    at: Math.trunc(at),
    type,
    keep: KEPT_LONGEST.has(type),
    data: { body, ...(original && { original: withoutTextsOf(body, original) }) },
  };
}

function notBegun(why: string): DomainError {
  return new DomainError('UNAVAILABLE', `The store cannot be reached (${why}). Nothing was done; try again.`);
}

/** The call may already have started something: a caller that simply retried could have it done twice. */
function notStored(why: string): DomainError {
  return new DomainError(
    'UNAVAILABLE',
    `The store cannot be reached (${why}). Anything already started continues and will be stored later: check the session before you send the call again.`,
  );
}
