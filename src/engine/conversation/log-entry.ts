import { bodyOf } from '../../driver/translate.ts';
import { eventType, type EventBody, type EventType, type Original, type SessionEvent } from '../../schema/events.ts';
import { Packed } from './packed.ts';
import { sizeOf } from './size-of.ts';

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
