import { deflateRawSync, inflateRawSync } from 'node:zlib';

/**
 * Events as compressed JSON. As objects they take many times their text, and a server may remember hundreds of sessions
 * that have no process and that nobody looks at any more.
 */
export class PackedEvents<Event> {
  readonly #bytes: Buffer;

  constructor(events: readonly Event[]) {
    // Copied, because zlib's own buffer is 16 kB however little it holds.
    this.#bytes = Buffer.from(deflateRawSync(JSON.stringify(events), { level: 1 }));
  }

  unpack(): Event[] {
    return JSON.parse(inflateRawSync(this.#bytes).toString('utf8')) as Event[];
  }
}
