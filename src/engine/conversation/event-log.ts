import { KEPT_LONGEST, type EventBody, type Original, type SessionEvent } from '../../schema/events.ts';
import {
  heardEntry,
  ownEntry,
  packEntries,
  storedEntry,
  unpackEntries,
  type Entry,
  type OwnEntry,
  type PackedEntries,
} from './log-entry.ts';

type Partial = Extract<EventBody, { kind: 'partial' }>;

export interface EventLogLimits {
  /** Events kept; twice as many with those that are dropped last. */
  maxEvents: number;
  maxBytes: number;
}

/** What is kept of one session in memory. A hub's store keeps all of it. */
export function eventLimits({ eventBufferSize }: { readonly eventBufferSize: number }): EventLogLimits {
  return { maxEvents: eventBufferSize, maxBytes: 4_000_000 };
}

export interface Slice {
  /** Oldest first. Ids rise by one, but dropped events leave gaps. */
  events: readonly SessionEvent[];
  /** Set when events after the cursor were dropped: where the retained events start. */
  resetTo: number | undefined;
  /** There are more after these, which have to be read separately. */
  hasMore?: true;
}

/** The events of one session: numbered, bounded in count and bytes, oldest dropped first. */
export class EventLog {
  readonly #limits: EventLogLimits;
  readonly #announce: (event: SessionEvent) => void;
  #entries: Entry[] = [];
  /** Older than all of them and dropped last, so the next one to drop is the first of the others. */
  #spared: Entry[] = [];
  /** Replaces the entries while the session has no process. */
  #packed: PackedEntries | undefined;
  #length = 0;
  #bytes = 0;
  #ordinary = 0;
  #nextId = 1;
  /** The newest event that was dropped. */
  #droppedThrough = 0;
  #delivered = 0;
  #stream: { messageId: string | undefined; open: OwnEntry<Partial> | undefined } = {
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
    return this.#packed ? this.#length : this.#spared.length + this.#entries.length;
  }

  /** Call when nothing more is expected for a long time: reading unpacks temporarily, an event permanently. */
  pack(): void {
    if (this.#packed) return;
    this.#closePartial();
    this.#length = this.length;
    this.#packed = packEntries(this.#all);
    this.#entries = [];
    this.#spared = [];
  }

  /** Fills an empty log with what was kept of it before a restart, oldest first; cursors handed out then stay valid. */
  restore(events: readonly SessionEvent[], nextId: number, droppedThrough: number): void {
    for (const event of events) this.#add(storedEntry(event));
    this.#nextId = nextId;
    this.#droppedThrough = Math.max(this.#droppedThrough, droppedThrough);
    this.#delivered = nextId - 1;
    this.#trim();
  }

  append(body: EventBody, at: number, original?: Original): SessionEvent {
    this.#closePartial();
    const id = this.#nextId++;
    const entry = this.#push(original ? heardEntry(id, body, at, original) : ownEntry(id, body, at));
    this.#trim();
    this.#announce(entry);
    return entry;
  }

  beginPartial(messageId: string): void {
    this.#closePartial();
    this.#stream = { messageId, open: undefined };
  }

  /**
   * Streamed text. It extends one event until that event has been read; then the next piece opens a new one. So even a
   * long stream makes few events, and no reader misses a piece.
   */
  appendPartial(text: string, at: number): void {
    if (this.growPartial(text)) return;
    const { messageId } = this.#stream;
    this.#closePartial();
    const body: Partial = { kind: 'partial', ...(messageId !== undefined && { messageId }), text };
    const entry = this.#push(ownEntry(this.#nextId++, body, at));
    this.#stream = { messageId, open: entry };
    this.#trim();
  }

  /** Whether there was an event to grow. */
  growPartial(text: string): boolean {
    const { open } = this.#stream;
    if (!open || open.id <= this.#delivered || open.id <= this.#droppedThrough) return false;
    open.body.text += text;
    open.size += text.length;
    this.#bytes += text.length;
    this.#trim();
    return true;
  }

  /** From `cursor` on, the id of the first event requested. The caller iterates lazily. */
  from(cursor: number): Slice {
    const entries = !this.#packed && cursor > (this.#spared.at(-1)?.id ?? 0) ? this.#entries : this.#all;
    const start = indexOf(entries, cursor);
    const lost = cursor <= this.#droppedThrough;
    const resetTo = lost ? (entries[start]?.id ?? this.#nextId) : undefined;
    return { events: start === 0 ? entries : entries.slice(start), resetTo };
  }

  /** Newest first, for readers that want only the last of something, or the last before an event. */
  *newestFirst(before = Infinity): Generator<SessionEvent> {
    const entries = this.#all;
    for (let index = indexOf(entries, before) - 1; index >= 0; index--) {
      const entry = entries[index];
      if (entry) yield entry;
    }
  }

  markDelivered(upTo: number): void {
    this.#delivered = Math.max(this.#delivered, upTo);
    // An event that has been read no longer grows: the next piece becomes a new event.
    if (this.#stream.open && this.#stream.open.id <= upTo) this.#closePartial();
  }

  get #all(): readonly Entry[] {
    if (this.#packed) return unpackEntries(this.#packed);
    return this.#spared.length === 0 ? this.#entries : [...this.#spared, ...this.#entries];
  }

  #push<Kept extends Entry>(entry: Kept): Kept {
    if (this.#packed) {
      this.#entries = unpackEntries(this.#packed);
      this.#packed = undefined;
    }
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
    while (this.#ordinary > maxEvents || (this.#bytes > maxBytes && this.#ordinary > 0)) {
      for (let first = this.#entries[0]; first && KEPT_LONGEST.has(first.type); first = this.#entries[0]) {
        this.#spared.push(first);
        this.#entries.shift();
      }
      // The newest stays, however large it is.
      if (this.#entries.length <= 1) break;
      this.#drop(this.#entries);
    }
    while ((this.length > 2 * maxEvents || this.#bytes > 2 * maxBytes) && this.length > 1)
      this.#drop(this.#spared.length > 0 ? this.#spared : this.#entries);
  }

  #drop(oldestFirst: Entry[]): void {
    const dropped = oldestFirst.shift();
    if (!dropped) return;
    this.#bytes -= dropped.size;
    if (!KEPT_LONGEST.has(dropped.type)) this.#ordinary--;
    this.#droppedThrough = Math.max(this.#droppedThrough, dropped.id);
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
