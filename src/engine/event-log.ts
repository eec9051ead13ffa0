import { eventType, KEPT_LONGEST, type EventBody, type Original, type SessionEvent } from '../schema/events.ts';
import { PackedEvents } from './packed-events.ts';
import { sizeOf } from './size-of.ts';

type Entry<Body extends EventBody = EventBody> = SessionEvent & { readonly body: Body; size: number };
type Partial = Extract<EventBody, { kind: 'partial' }>;

/** What id, type and time add to an event. */
const ENVELOPE_BYTES = 80;

export interface EventLogLimits {
  /** Events kept; twice as many with those that are dropped last. */
  maxEvents: number;
  maxBytes: number;
}

/** What is kept of one session, in memory and in the hub's store alike. */
export function eventLimits({ eventBufferSize }: { readonly eventBufferSize: number }): EventLogLimits {
  return { maxEvents: eventBufferSize, maxBytes: 4_000_000 };
}

export interface Slice {
  /** Oldest first. Ids rise by one, but dropped events leave gaps. */
  events: readonly SessionEvent[];
  /** Set when events from the cursor on were dropped: where what is kept begins. */
  resetTo: number | undefined;
}

/** The events of one session: numbered, bounded in count and bytes, oldest dropped first. */
export class EventLog {
  readonly #limits: EventLogLimits;
  readonly #announce: (event: SessionEvent) => void;
  #entries: Entry[] = [];
  /** In place of the entries, while the session has no process. */
  #packed: PackedEvents<Entry> | undefined;
  #length = 0;
  #bytes = 0;
  #ordinary = 0;
  #nextId = 1;
  /** The newest event that was dropped. */
  #droppedThrough = 0;
  #delivered = 0;
  #stream: { messageId: string | undefined; open: Entry<Partial> | undefined } = {
    messageId: undefined,
    open: undefined,
  };

  /** `announce` is called with each event, in order; with one that grows when it has stopped. */
  constructor(limits: EventLogLimits, announce: (event: SessionEvent) => void = () => undefined) {
    this.#limits = limits;
    this.#announce = announce;
  }

  get nextId(): number {
    return this.#nextId;
  }

  /** The newest event that was dropped; 0 where none was. */
  get droppedThrough(): number {
    return this.#droppedThrough;
  }

  get length(): number {
    return this.#packed ? this.#length : this.#entries.length;
  }

  /** To be called when nothing more is expected for long: reading unpacks for the moment, an event for good. */
  pack(): void {
    if (this.#packed) return;
    this.#closePartial();
    this.#length = this.#entries.length;
    this.#packed = new PackedEvents(this.#entries);
    this.#entries = [];
  }

  /** Fills an empty log with what was kept of it before a restart, oldest first; cursors handed out then stay valid. */
  restore(events: readonly SessionEvent[], nextId: number, droppedThrough: number): void {
    for (const { id, type, at, body, original } of events)
      this.#add(entryOf({ id, type, at, body, ...(original && { original }) }));
    this.#nextId = nextId;
    this.#droppedThrough = droppedThrough;
    this.#delivered = nextId - 1;
    this.#trim();
  }

  append(body: EventBody, at: number, original?: Original): SessionEvent {
    this.#closePartial();
    const entry = this.#push(body, at, original);
    this.#trim();
    this.#announce(entry);
    return entry;
  }

  beginPartial(messageId: string): void {
    this.#closePartial();
    this.#stream = { messageId, open: undefined };
  }

  /**
   * Text that streams in. It grows one event until somebody has read it; then the next piece opens a new one. So even
   * a long stream makes few events, and no reader misses a piece.
   */
  appendPartial(text: string, at: number): void {
    const { messageId, open } = this.#stream;
    if (open && open.id > this.#delivered && open.id > this.#droppedThrough) {
      open.body.text += text;
      open.size += text.length;
      this.#bytes += text.length;
      this.#trim();
      return;
    }
    this.#closePartial();
    const entry = this.#push({ kind: 'partial', ...(messageId !== undefined && { messageId }), text }, at);
    this.#stream = { messageId, open: entry };
    this.#trim();
  }

  /** From `cursor` on, the id of the first event wanted. The caller walks it lazily: nothing is copied. */
  from(cursor: number): Slice {
    const entries = this.#read();
    const start = indexOf(entries, cursor);
    const lost = cursor <= this.#droppedThrough;
    const resetTo = lost ? (entries[start]?.id ?? this.#nextId) : undefined;
    return { events: start === 0 ? entries : entries.slice(start), resetTo };
  }

  /** Newest first, for those who want only the last of something. */
  *newestFirst(): Generator<SessionEvent> {
    const entries = this.#read();
    for (let index = entries.length - 1; index >= 0; index--) {
      const entry = entries[index];
      if (entry) yield entry;
    }
  }

  markDelivered(upTo: number): void {
    this.#delivered = Math.max(this.#delivered, upTo);
    // Nothing grows that somebody has read: the next piece is an event of its own.
    if (this.#stream.open && this.#stream.open.id <= upTo) this.#closePartial();
  }

  #read(): readonly Entry[] {
    return this.#packed?.unpack() ?? this.#entries;
  }

  #push<Body extends EventBody>(body: Body, at: number, original?: Original): Entry<Body> {
    if (this.#packed) {
      this.#entries = this.#packed.unpack();
      this.#packed = undefined;
    }
    const event = { id: this.#nextId++, type: eventType(body), at, body };
    const entry = entryOf(original ? { ...event, original } : event);
    this.#add(entry);
    return entry;
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    this.#bytes += entry.size;
    if (!KEPT_LONGEST.has(entry.type)) this.#ordinary++;
  }

  #closePartial(): void {
    const { messageId, open } = this.#stream;
    this.#stream = { messageId, open: undefined };
    if (open) this.#announce(open);
  }

  #trim(): void {
    const { maxEvents, maxBytes } = this.#limits;
    while (this.#ordinary > maxEvents || (this.#bytes > maxBytes && this.#ordinary > 0 && this.#entries.length > 1)) {
      const index = this.#entries.findIndex((entry) => !KEPT_LONGEST.has(entry.type));
      if (index < 0 || index === this.#entries.length - 1) break;
      this.#drop(index);
      this.#ordinary--;
    }
    while ((this.#entries.length > 2 * maxEvents || this.#bytes > 2 * maxBytes) && this.#entries.length > 1) {
      const oldest = this.#entries[0];
      if (oldest && !KEPT_LONGEST.has(oldest.type)) this.#ordinary--;
      this.#drop(0);
    }
  }

  #drop(index: number): void {
    const [dropped] = index === 0 ? [this.#entries.shift()] : this.#entries.splice(index, 1);
    if (!dropped) return;
    this.#bytes -= dropped.size;
    this.#droppedThrough = Math.max(this.#droppedThrough, dropped.id);
  }
}

function entryOf<Event extends SessionEvent>(event: Event): Event & { size: number } {
  return { ...event, size: sizeOf(event.body) + sizeOf(event.original) + ENVELOPE_BYTES };
}

/** Of the first entry with this id or a later one. */
function indexOf(entries: readonly Entry[], id: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle]?.id ?? 0) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
