import { z } from 'zod';
import type { AuditTrail } from '../../engine/ports.ts';
import type { Clock } from '../../engine/clock.ts';
import { messageOf } from '../../errors/errors.ts';
import type { FeedEntry, HubRef } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { follow } from '../../store/wake-ups.ts';
import { note, noteOf, type KnownRests, type NotifyTarget } from './notify-target.ts';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;
const GIVE_UP_MS = 24 * 3_600_000;
const STORE_RETRY_MS = 1_000;
const MAX_CONCURRENT = 4;
const MAX_PENDING = 1_000;
const POSITIONS_UNSTORED = 1_000;

export interface NotifierServices {
  readonly store: Store;
  readonly hub: HubRef;
  readonly target: NotifyTarget;
  /** Where the dashboard is. */
  readonly url: string;
  readonly clock: Clock;
  readonly audit: AuditTrail;
  warn(line: string): void;
}

const pendingNote = z.object({ note, since: z.number(), attempts: z.int() });
type PendingNote = z.infer<typeof pendingNote>;

/** What outlives the process. Notifications delivered but not yet recorded are sent again, under the same id. */
const remembered = z.object({
  position: z.int(),
  rests: z.array(z.tuple([z.string(), z.string()])),
  pending: z.array(pendingNote),
});

interface Line {
  readonly notes: PendingNote[];
  isBusy: boolean;
  cancelRetry: (() => void) | undefined;
}

/**
 * Sends a notification when a request opens or a session becomes idle. Reads the store's feed independently, so it
 * blocks nothing; notifications of one session are sent in order, each until it is accepted or a day has passed.
 */
export class Notifier {
  readonly #services: NotifierServices;
  readonly #stop = new AbortController();
  readonly #lines = new Map<string, Line>();
  #rests: KnownRests = new Map();
  #position = 0;
  #storedPosition = 0;
  #atOnce = 0;
  #saving: Promise<void> | undefined;
  #isDirty = false;
  #reading: Promise<void> | undefined;
  readonly #sending = new Set<Promise<void>>();
  /** Outcomes of notifications so far. */
  readonly counts = { delivered: 0, failed: 0, dropped: 0 };

  constructor(services: NotifierServices) {
    this.#services = services;
  }

  /** From where the last incarnation of this hub left off; the first one starts with what happens from now on. */
  async start(): Promise<void> {
    const { store } = this.#services;
    const stored = await store.setting(this.#key);
    const known = stored === undefined ? undefined : remembered.safeParse(JSON.parse(stored)).data;
    this.#position = known?.position ?? (await store.feed({ after: Number.MAX_SAFE_INTEGER, limit: 1 })).last;
    this.#rests = new Map(known?.rests ?? (await this.#restsNow()));
    for (const pending of known?.pending ?? []) this.#enqueue(pending);
    this.#save();
    this.#reading = this.#read();
    this.#deliver();
  }

  get pending(): number {
    return [...this.#lines.values()].reduce((sum, { notes }) => sum + notes.length, 0);
  }

  /** Stops sending; pending ones are stored. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort();
    for (const { cancelRetry } of this.#lines.values()) cancelRetry?.();
    await this.#reading;
    await Promise.all(this.#sending);
    await this.#saving;
  }

  get #key(): string {
    return `notify.${this.#services.hub.hub}`;
  }

  // ── what there is to tell ──────────────────────────────────────────────────────────────────────────────────────

  async #read(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        for await (const { entries, last } of follow(this.#services.store, this.#position, signal)) {
          let hasNews = false;
          for (const entry of entries) hasNews = (await this.#take(entry)) || hasNews;
          this.#position = last;
          // Entries that are not reported may be read again.
          if (hasNews || last - this.#storedPosition > POSITIONS_UNSTORED) this.#save();
          this.#deliver();
        }
      } catch (error) {
        this.#services.warn(`notifications: the store cannot be read: ${messageOf(error)}`);
        await this.#pause(STORE_RETRY_MS);
      }
    }
  }

  /** Whether there is something new to persist. */
  async #take(entry: FeedEntry): Promise<boolean> {
    if (entry.kind !== 'session' && entry.kind !== 'request') return false;
    const { store, hub, url, clock } = this.#services;
    const session = entry.kind === 'session' ? entry.row : await store.session(entry.row.sessionId);
    // Each hub reports its own sessions.
    if (session?.runsOn.hub !== hub.hub) return false;
    const now = clock.wallTime();
    const knownRest = this.#rests.get(session.id);
    const told = noteOf(entry, session, this.#rests, { url, now });
    if (told) this.#enqueue({ note: told, since: now, attempts: 0 });
    return told !== undefined || this.#rests.get(session.id) !== knownRest;
  }

  /** Sessions that are already idle when notifications are turned on are not news. */
  async #restsNow(): Promise<KnownRests> {
    const { store, hub, url } = this.#services;
    const rests: KnownRests = new Map();
    const { items } = await store.sessions({ hub: hub.hub, limit: 1_000 });
    for (const row of items) noteOf({ kind: 'session', seq: 0, row }, row, rests, { url, now: 0 });
    return rests;
  }

  #enqueue(pending: PendingNote): void {
    const { id } = pending.note.session;
    const line = this.#lines.get(id) ?? { notes: [], isBusy: false, cancelRetry: undefined };
    this.#lines.set(id, line);
    if (line.notes.some(({ note: { id: known } }) => known === pending.note.id)) return;
    line.notes.push(pending);
    if (this.pending > MAX_PENDING) this.#dropOldest();
  }

  #dropOldest(): void {
    const waiting = [...this.#lines.values()].filter(({ notes, isBusy }) => notes.length > (isBusy ? 1 : 0));
    const [oldest] = waiting.toSorted((a, b) => (a.notes[0]?.since ?? 0) - (b.notes[0]?.since ?? 0));
    const [dropped] = oldest?.notes.splice(oldest.isBusy ? 1 : 0, 1) ?? [];
    if (dropped) this.#drop(dropped, 'too many pending');
  }

  // ── telling it ─────────────────────────────────────────────────────────────────────────────────────────────────

  #deliver(): void {
    for (const [id, line] of this.#lines) {
      if (this.#atOnce >= MAX_CONCURRENT || this.#stop.signal.aborted) return;
      const [head] = line.notes;
      if (!head) {
        if (!line.isBusy) this.#lines.delete(id);
      } else if (!line.isBusy && !line.cancelRetry) this.#begin(line, head);
    }
  }

  #begin(line: Line, head: PendingNote): void {
    line.isBusy = true;
    this.#atOnce++;
    const sending = this.#send(line, head).finally(() => {
      line.isBusy = false;
      this.#atOnce--;
      this.#sending.delete(sending);
      this.#deliver();
    });
    this.#sending.add(sending);
  }

  async #send(line: Line, head: PendingNote): Promise<void> {
    const { target, clock } = this.#services;
    const { signal } = this.#stop;
    const sent = await target(JSON.stringify(head.note), signal);
    if (!sent.ok && signal.aborted) return;
    head.attempts++;
    if (sent.ok) {
      this.counts.delivered++;
      line.notes.shift();
    } else if (clock.wallTime() - head.since >= GIVE_UP_MS) {
      line.notes.shift();
      this.#drop(head, sent.why);
    } else {
      this.counts.failed++;
      const wait = Math.min(FIRST_RETRY_MS * 2 ** (head.attempts - 1), MAX_RETRY_MS);
      line.cancelRetry = clock.after(wait, () => {
        line.cancelRetry = undefined;
        this.#deliver();
      });
    }
    this.#save();
  }

  #drop({ note: { type, session, request }, attempts }: PendingNote, why: string): void {
    this.counts.dropped++;
    this.#services.audit.record({
      kind: 'server',
      session: session.id,
      who: 'server',
      what: `notification ${type}`,
      outcome: 'dropped',
      details: { why, attempts, ...(request && { request: request.id }) },
    });
  }

  // ── what outlives the process ──────────────────────────────────────────────────────────────────────────────────

  /** One write at a time; changes made in the meantime go into the next. */
  #save(): void {
    this.#isDirty = true;
    this.#saving ??= this.#saveAll().finally(() => (this.#saving = undefined));
  }

  async #saveAll(): Promise<void> {
    while (this.#isDirty) {
      this.#isDirty = false;
      const state: z.infer<typeof remembered> = {
        position: this.#position,
        rests: [...this.#rests],
        pending: [...this.#lines.values()].flatMap(({ notes }) => notes),
      };
      try {
        await this.#services.store.write([{ type: 'setting.put', key: this.#key, value: JSON.stringify(state) }]);
        this.#storedPosition = state.position;
      } catch (error) {
        this.#services.warn(`notifications: the queue cannot be stored: ${messageOf(error)}`);
        if (this.#stop.signal.aborted) return;
        this.#isDirty = true;
        await this.#pause(STORE_RETRY_MS);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stop;
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#services.clock.after(ms, done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}
