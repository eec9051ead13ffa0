import type { EventType } from '../driver/agent-signal.ts';
import { PackedEvents } from './packed-events.ts';
import { sizeOf } from './size-of.ts';

export interface SessionEvent {
  readonly id: number;
  readonly type: EventType;
  readonly data: unknown;
  readonly timestamp: number;
}

interface Entry<Data = unknown> extends SessionEvent {
  readonly data: Data;
  size: number;
}

/** What id, type and time add to an event. */
const ENVELOPE_BYTES = 80;

export interface EventLogLimits {
  /** Events kept; twice as many with those that are dropped last. */
  maxEvents: number;
  maxBytes: number;
}

/** Dropped last: without them a caller could not know what was asked, decided and answered. */
const DROPPED_LAST: ReadonlySet<EventType> = new Set<EventType>([
  'permission_request',
  'permission_result',
  'result',
  'error',
]);

export interface Slice {
  /** Oldest first. Ids rise by one, but dropped events leave gaps. */
  events: readonly SessionEvent[];
  /** Set when events from the cursor on were dropped: where what is kept begins. */
  resetTo: number | undefined;
}

/** The events of one session: numbered, bounded in count and bytes, oldest dropped first. */
export class EventLog {
  readonly #limits: EventLogLimits;
  #entries: Entry[] = [];
  /** In place of the entries, while the session has no process. */
  #packed: PackedEvents<Entry> | undefined;
  #length = 0;
  #bytes = 0;
  #ordinary = 0;
  #nextId = 1;
  /** The newest event that was dropped. */
  #droppedUpTo = 0;
  #delivered = 0;
  #stream: { messageId: string | undefined; open: Entry<{ text: string }> | undefined } = {
    messageId: undefined,
    open: undefined,
  };

  constructor(limits: EventLogLimits) {
    this.#limits = limits;
  }

  get nextId(): number {
    return this.#nextId;
  }

  get length(): number {
    return this.#packed ? this.#length : this.#entries.length;
  }

  /** To be called when nothing more is expected for long: reading unpacks for the moment, an event for good. */
  pack(): void {
    if (this.#packed) return;
    this.#length = this.#entries.length;
    this.#packed = new PackedEvents(this.#entries);
    this.#entries = [];
    this.#stream = { messageId: undefined, open: undefined };
  }

  append(type: EventType, data: unknown, timestamp: number): SessionEvent {
    const entry = this.#push(type, data, timestamp);
    this.#trim();
    return entry;
  }

  beginPartial(messageId: string): void {
    this.#stream = { messageId, open: undefined };
  }

  /**
   * Text that streams in. It grows one event until somebody has read it; then the next piece opens a new one. So a
   * stream of any length makes no more events than there are readings, and nobody misses a piece.
   */
  appendPartial(text: string, timestamp: number): void {
    const { messageId, open } = this.#stream;
    if (open && open.id > this.#delivered && open.id > this.#droppedUpTo) {
      open.data.text += text;
      open.size += text.length;
      this.#bytes += text.length;
      this.#trim();
      return;
    }
    const entry = this.#push('progress', { type: 'partial', messageId, text }, timestamp);
    this.#stream = { messageId, open: entry };
    this.#trim();
  }

  /** From `cursor` on, the id of the first event wanted. The caller walks it lazily: nothing is copied. */
  from(cursor: number): Slice {
    const entries = this.#read();
    const start = indexOf(entries, cursor);
    const lost = cursor <= this.#droppedUpTo;
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
  }

  #read(): readonly Entry[] {
    return this.#packed?.unpack() ?? this.#entries;
  }

  #push<Data>(type: EventType, data: Data, timestamp: number): Entry<Data> {
    if (this.#packed) {
      this.#entries = this.#packed.unpack();
      this.#packed = undefined;
    }
    const entry: Entry<Data> = { id: this.#nextId++, type, data, timestamp, size: sizeOf(data) + ENVELOPE_BYTES };
    this.#entries.push(entry);
    this.#bytes += entry.size;
    if (!DROPPED_LAST.has(type)) this.#ordinary++;
    return entry;
  }

  #trim(): void {
    const { maxEvents, maxBytes } = this.#limits;
    while (this.#ordinary > maxEvents || (this.#bytes > maxBytes && this.#ordinary > 0 && this.#entries.length > 1)) {
      const index = this.#entries.findIndex((entry) => !DROPPED_LAST.has(entry.type));
      if (index < 0 || index === this.#entries.length - 1) break;
      this.#drop(index);
      this.#ordinary--;
    }
    while ((this.#entries.length > 2 * maxEvents || this.#bytes > 2 * maxBytes) && this.#entries.length > 1) {
      const oldest = this.#entries[0];
      if (oldest && !DROPPED_LAST.has(oldest.type)) this.#ordinary--;
      this.#drop(0);
    }
  }

  #drop(index: number): void {
    const [dropped] = index === 0 ? [this.#entries.shift()] : this.#entries.splice(index, 1);
    if (!dropped) return;
    this.#bytes -= dropped.size;
    this.#droppedUpTo = Math.max(this.#droppedUpTo, dropped.id);
  }
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
