import { deflateRawSync, inflateRawSync } from 'node:zlib';
import {
  KEPT_LONGEST,
  type EventBody,
  type Original,
  type SessionEvent,
  eventType,
  type EventType,
} from '../../schema/events.ts';
import { bodyOf } from '../../driver/translate.ts';

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

/**
 * Plain data as compressed JSON. As objects it takes many times the size of its text, and a server may remember
 * hundreds of sessions that have no process and are not being used.
 */
class Packed<Value> {
  /** A string, because a buffer of a few hundred bytes has as much overhead again. */
  readonly #bytes: string;

  constructor(value: Value) {
    this.#bytes = deflateRawSync(JSON.stringify(value)).toString('latin1');
  }

  unpack(): Value {
    return JSON.parse(inflateRawSync(Buffer.from(this.#bytes, 'latin1')).toString('utf8')) as Value;
  }
}

/** A map that is packed while nothing is added: reading unpacks it temporarily, writing permanently. */
export class PackableMap<Value> {
  #map: Map<string, Value> | undefined;
  #packed: Packed<[string, Value][]> | undefined;

  pack(): void {
    if (!this.#map) return;
    this.#packed = this.#map.size === 0 ? undefined : new Packed([...this.#map]);
    this.#map = undefined;
  }

  get toRead(): ReadonlyMap<string, Value> {
    return this.#map ?? new Map(this.#packed?.unpack());
  }

  get toWrite(): Map<string, Value> {
    this.#map ??= new Map(this.#packed?.unpack());
    this.#packed = undefined;
    return this.#map;
  }
}

/** Roughly the JSON size of a value, without building the JSON: the log measures every event. */
export function sizeOf(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return value.length + 2;
    case 'number':
    case 'boolean':
      return 8;
    case 'object':
      return value === null ? 4 : sizeOfObject(value);
    default:
      return 0;
  }
}

function sizeOfObject(value: object): number {
  let size = 2;
  if (Array.isArray(value)) {
    for (const item of value) size += sizeOf(item) + 1;
    return size;
  }
  // Much faster than Object.entries; plain data has no other names.
  for (const name in value) size += name.length + 4 + sizeOf((value as Record<string, unknown>)[name]);
  return size;
}

type Entry = SessionEvent & { size: number };
type OwnEntry<Body extends EventBody> = Entry & { readonly body: Body };
type PackedEntries = Packed<readonly (Entry | HeardFields)[]>;

type HeardFields = Omit<Entry, 'body' | 'original'> & { readonly message: unknown };

/** What id, type and time add to an event. */
const ENVELOPE_BYTES = 80;
const UNKNOWN: EventBody = { kind: 'notice', name: 'unknown' };

/** What Claude Code said is kept as received and in no other form: the event is derived again for each reader. */
class HeardEntry implements Entry {
  readonly id: number;
  readonly type: EventType;
  readonly at: number;
  readonly size: number;
  readonly #message: unknown;

  constructor({ id, type, at, size, message }: HeardFields) {
    this.id = id;
    this.type = type;
    this.at = at;
    this.size = size;
    this.#message = message;
  }

  get body(): EventBody {
    return bodyOf(this.#message) ?? UNKNOWN;
  }

  get original(): Original {
    return { message: this.#message };
  }

  get fields(): HeardFields {
    const { id, type, at, size } = this;
    return { id, type, at, size, message: this.#message };
  }

  toJSON(): SessionEvent {
    const { id, type, at, body, original } = this;
    return { id, type, at, body, original };
  }
}

function heardEntry(id: number, body: EventBody, at: number, { message }: Original): Entry {
  return new HeardEntry({ id, type: eventType(body), at, size: sizeOf(message) + ENVELOPE_BYTES, message });
}

/** What the server itself says. */
function ownEntry<Body extends EventBody>(id: number, body: Body, at: number): OwnEntry<Body> {
  return { id, type: eventType(body), at, body, size: sizeOf(body) + ENVELOPE_BYTES };
}

/** As stored: with the body as it was read then, by whatever version. */
function storedEntry({ id, type, at, body, original }: SessionEvent): Entry {
  const size = sizeOf(body) + sizeOf(original) + ENVELOPE_BYTES;
  return { id, type, at, body, ...(original && { original }), size };
}

function packEntries(entries: readonly Entry[]): PackedEntries {
  return new Packed(entries.map((entry) => (entry instanceof HeardEntry ? entry.fields : entry)));
}

function unpackEntries(packed: PackedEntries): Entry[] {
  return packed.unpack().map((kept) => ('message' in kept ? new HeardEntry(kept) : kept));
}
