import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { bodyOf } from '../../driver/translate.ts';
import { type EventBody, eventType, type EventType, type Original, type SessionEvent } from '../../schema/events.ts';

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

export type Entry = SessionEvent & { size: number };
export type OwnEntry<Body extends EventBody> = Entry & { readonly body: Body };
export type PackedEntries = Packed<readonly (Entry | HeardFields)[]>;

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

export function heardEntry(id: number, body: EventBody, at: number, { message }: Original): Entry {
  return new HeardEntry({ id, type: eventType(body), at, size: sizeOf(message) + ENVELOPE_BYTES, message });
}

/** What the server itself says. */
export function ownEntry<Body extends EventBody>(id: number, body: Body, at: number): OwnEntry<Body> {
  return { id, type: eventType(body), at, body, size: sizeOf(body) + ENVELOPE_BYTES };
}

/** As stored: with the body as it was read then, by whatever version. */
export function storedEntry({ id, type, at, body, original }: SessionEvent): Entry {
  const size = sizeOf(body) + sizeOf(original) + ENVELOPE_BYTES;
  return { id, type, at, body, ...(original && { original }), size };
}

export function packEntries(entries: readonly Entry[]): PackedEntries {
  return new Packed(entries.map((entry) => (entry instanceof HeardEntry ? entry.fields : entry)));
}

export function unpackEntries(packed: PackedEntries): Entry[] {
  return packed.unpack().map((kept) => ('message' in kept ? new HeardEntry(kept) : kept));
}
