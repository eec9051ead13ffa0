import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { Writing } from '../../engine/client.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { StreamMessages } from '../../schema/api-events.ts';
import type { FeedEntry, StoredSession } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { frameOf } from '../http/respond.ts';
import type { EventStream } from '../http/route.ts';
import type { FeedTail } from './feed-tail.ts';
import { sees } from './rights.ts';
import { eventView, requestView, sessionView, type ViewContext } from './views.ts';

const PAGE = 100;
/** Readers further behind reload what they show: that is less than replaying everything. */
const FURTHEST_BEHIND = 10_000;
/** Number of other principals' rows after which a reader is sent its position, so that it can resume from there. */
const SILENT_POSITIONS = 1_000;
const MAX_SESSIONS = 2_000;
/** How often a reader is told what was added to a text that is being written. */
const WRITING_MS = 250;
const MAX_VIEWS = 4;
/** Pages for readers that keep up, mostly the last one. */
const MAX_PAGES = 4;
/** A stalled reader holds on to one of these. */
const PART_BYTES = 64 * 1024;

export interface StreamRequest {
  readonly view: ViewContext;
  /** As the client gave it. */
  readonly lastEventId: string | undefined;
  readonly session: string | undefined;
  readonly events: boolean;
  readonly eventsOf: string | undefined;
}

export interface StreamSource {
  readonly tail: FeedTail;
  readonly sessions: KnownSessions;
  readonly frames: SentFrames;
  readonly replays: Replays;
  /** What Claude is writing in a session that this principal may see and that runs here. */
  writing(principal: Principal): (sessionId: string) => Writing | undefined;
  /** Identifies this store: a different one has different positions. */
  storeId(): Promise<string>;
}

type Message = { [Name in keyof StreamMessages]: { event: Name; data: StreamMessages[Name] } }[keyof StreamMessages];

/** Events that are sent together, up to the position of the last of them. */
interface Part {
  readonly last: number;
  readonly frames: Buffer;
}

function seenBy({ principal: { id, role } }: ViewContext): string {
  return `${role} ${id}`;
}

/** Sends one reader everything it may see, from where it left off, at the pace at which it reads. */
export async function streamFeed(source: StreamSource, request: StreamRequest, stream: EventStream): Promise<void> {
  const { tail } = source;
  const { newest, leave } = await tail.enter();
  const stopWriting = sendWriting(source, request, stream);
  try {
    const from = position(request.lastEventId, newest);
    let at = 'reset' in from ? newest : from.position;
    let told = at;
    const send = async (message: Message, id: number): Promise<void> => {
      told = id;
      await stream.send(frameOf({ id: String(id), ...message }));
    };
    if ('reset' in from) await send({ event: 'reset', data: { reason: from.reset, position: newest } }, newest);
    const store = await source.storeId();
    let isLive = false;
    while (!stream.closed.aborted) {
      const page = async () => {
        const { entries, last } = await tail.read(at, PAGE);
        return { entries, last, parts: await source.frames.page(entries, request, source) };
      };
      if (tail.isBehind(at)) await stream.room();
      const { entries, last, parts } = await (tail.isBehind(at)
        ? source.replays.run(request.view.principal.id, page)
        : page());
      for (const { frames, last: position } of parts) {
        told = position;
        await stream.send(frames);
        if (stream.closed.aborted) return;
      }
      at = last;
      if (entries.length > 0 && at - told < SILENT_POSITIONS) continue;
      if (!isLive || at - told >= SILENT_POSITIONS) await send({ event: 'live', data: { position: at, store } }, at);
      isLive = true;
      if (entries.length === 0) await tail.changed(at, stream.closed);
    }
  } finally {
    stopWriting();
    leave();
  }
}

/** Looks a few times a second at what is being written, and sends what was added. Returns how to stop that. */
function sendWriting(source: StreamSource, request: StreamRequest, stream: EventStream): () => void {
  const { view, events, session, eventsOf: sessionId = session } = request;
  if (!events || sessionId === undefined) return () => undefined;
  const look = source.writing(view.principal);
  let sent: Writing | undefined;
  const timer = setInterval(() => {
    const now = look(sessionId);
    const isSameTurn = now && sent && now.workedMs >= sent.workedMs;
    const added =
      now && isSameTurn && sent && now.text.startsWith(sent.text) ? now.text.slice(sent.text.length) : undefined;
    // What is finished stays until its event replaces it.
    const isNews = now && (!isSameTurn || (now.text !== '' && added !== ''));
    if (isNews) {
      const { text, workedMs, quietMs } = now;
      const at = added === undefined ? 0 : text.length - added.length;
      const data = { sessionId, at, text: added ?? text, workedMs, quietMs };
      void stream.send(frameOf({ event: 'writing' satisfies keyof StreamMessages, data }));
    }
    sent = now;
  }, WRITING_MS);
  return () => clearInterval(timer);
}

function position(given: string | undefined, newest: number): { position: number } | { reset: string } {
  if (given === undefined || given === '') return { position: newest };
  const at = /^\d{1,15}$/.test(given) ? Number(given) : undefined;
  if (at === undefined) return { reset: 'The id does not belong to this stream.' };
  if (at > newest) return { reset: 'The hub has a different store now.' };
  if (newest - at > FURTHEST_BEHIND) return { reset: 'Too much has happened since.' };
  return { position: at };
}

async function frameFor(
  entry: FeedEntry,
  { sessions, frames }: StreamSource,
  { view, session: only, events, eventsOf }: StreamRequest,
): Promise<Buffer | undefined> {
  if (entry.kind === 'command') return undefined;
  if (entry.kind === 'event' && (!events || entry.row.sessionId !== (eventsOf ?? entry.row.sessionId)))
    return undefined;
  if (entry.kind === 'session') sessions.put(entry.row);
  const sessionId = entry.kind === 'session' || entry.kind === 'removal' ? entry.row.id : entry.row.sessionId;
  if (only !== undefined && sessionId !== only) return undefined;
  const frame = (message: Message): Buffer => frameOf({ id: String(entry.seq), ...message });
  if (entry.kind === 'removal') {
    sessions.drop(sessionId);
    return sees(view.principal, entry.row) ? frame({ event: 'removed', data: { sessionId } }) : undefined;
  }
  const session =
    entry.kind === 'session' ? entry.row : (sessions.known(sessionId) ?? (await sessions.find(sessionId)));
  if (!session || !sees(view.principal, session)) return undefined;
  switch (entry.kind) {
    case 'session':
      return frames.of(entry, seenBy(view), async () =>
        frame({ event: 'session', data: await sessionView(entry.row, view) }),
      );
    case 'request':
      // Its decision is an event of the session; nobody ever waited for it.
      if (entry.row.outcome?.unasked) return undefined;
      return frame({ event: 'request', data: await requestView(entry.row, session, view) });
    case 'event':
      return frames.of(entry, '', () => frame({ event: 'event', data: { sessionId, ...eventView(entry.row) } }));
  }
}

/** Rows in the form in which they are sent: serialised once for all who see the same, while the tail has them. */
export class SentFrames {
  readonly #made = new WeakMap<FeedEntry, Map<string, Buffer>>();
  /** The latest: most readers are sent the same at the same time. */
  readonly #pages = new Map<string, Promise<readonly Part[]>>();

  /** What a reader is sent for these rows, in as few pieces as possible: each costs one write per reader. */
  page(entries: readonly FeedEntry[], request: StreamRequest, source: StreamSource): Promise<readonly Part[]> {
    const { view, session, events, eventsOf } = request;
    const rows = [entries[0]?.seq, entries.at(-1)?.seq, entries.length];
    const key = JSON.stringify([...rows, seenBy(view), session, events, eventsOf]);
    const known = this.#pages.get(key);
    if (known) return known;
    const made = partsOf(entries, source, request);
    this.#pages.set(key, made);
    made.catch(() => this.#pages.delete(key));
    if (this.#pages.size > MAX_PAGES) this.#pages.delete(this.#pages.keys().next().value ?? '');
    return made;
  }

  /** `seenBy`: distinguishes readers that see different things. */
  async of(entry: FeedEntry, seenBy: string, make: () => Buffer | Promise<Buffer>): Promise<Buffer> {
    const made = this.#made.get(entry) ?? new Map<string, Buffer>();
    const known = made.get(seenBy);
    if (known) return known;
    const frame = await make();
    // Each takes memory: where readers differ, each has its own.
    if (made.size < MAX_VIEWS) this.#made.set(entry, made.set(seenBy, frame));
    return frame;
  }
}

async function partsOf(
  entries: readonly FeedEntry[],
  source: StreamSource,
  request: StreamRequest,
): Promise<readonly Part[]> {
  const parts: Part[] = [];
  let frames: Buffer[] = [];
  let bytes = 0;
  let last = 0;
  const cut = (): void => {
    if (frames.length > 0) parts.push({ last, frames: Buffer.concat(frames, bytes) });
    frames = [];
    bytes = 0;
  };
  for (const entry of entries) {
    const frame = await frameFor(entry, source, request);
    if (!frame) continue;
    if (bytes + frame.length > PART_BYTES) cut();
    frames.push(frame);
    bytes += frame.length;
    last = entry.seq;
  }
  cut();
  return parts;
}

/** Sessions that the stream has come across: their owners do not change. */
export class KnownSessions {
  readonly #store: Pick<Store, 'session'>;
  readonly #known = new Map<string, StoredSession>();

  constructor(store: Pick<Store, 'session'>) {
    this.#store = store;
  }

  put(row: StoredSession): void {
    this.#known.delete(row.id);
    this.#known.set(row.id, row);
    if (this.#known.size > MAX_SESSIONS) this.#known.delete(this.#known.keys().next().value ?? '');
  }

  drop(id: string): void {
    this.#known.delete(id);
  }

  known(id: string): StoredSession | undefined {
    return this.#known.get(id);
  }

  async find(id: string): Promise<StoredSession | undefined> {
    const known = this.#known.get(id);
    if (known) return known;
    const row = await this.#store.session(id);
    if (row) this.put(row);
    return row;
  }
}

/** A page that took longer waited for something else, such as Postgres. */
const MAX_PAUSE_MS = 50;

/**
 * Readers that are behind take turns, one page at a time, and principals take turns before their readers do. After each
 * page the event loop belongs to everybody else for as long as the page took: replaying never takes more than half of it.
 */
export class Replays {
  /** By principal, in the order of their next turn. */
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #state: 'idle' | 'running' = 'idle';

  run<T>(principal: string, page: () => Promise<T>): Promise<T> {
    const made = new Promise<T>((resolve, reject) => {
      const queue = this.#waiting.get(principal) ?? [];
      queue.push(() => page().then(resolve, reject));
      this.#waiting.set(principal, queue);
    });
    if (this.#state === 'idle') void this.#runAll();
    return made;
  }

  async #runAll(): Promise<void> {
    this.#state = 'running';
    for (let next = this.#next(); next; next = this.#next()) {
      const begin = performance.now();
      await next();
      const tookMs = performance.now() - begin;
      // A timer alone could be due at once, without anything else having been served.
      await nextTurn();
      if (tookMs >= 1) await delay(Math.min(tookMs, MAX_PAUSE_MS));
    }
    this.#state = 'idle';
  }

  #next(): (() => Promise<void>) | undefined {
    for (const [principal, queue] of this.#waiting) {
      const page = queue.shift();
      this.#waiting.delete(principal);
      if (queue.length > 0) this.#waiting.set(principal, queue);
      if (page) return page;
    }
    return undefined;
  }
}
