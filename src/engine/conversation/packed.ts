import { deflateRawSync, inflateRawSync } from 'node:zlib';

/**
 * Plain data as compressed JSON. As objects it takes many times the size of its text, and a server may remember
 * hundreds of sessions that have no process and are not being used.
 */
export class Packed<Value> {
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
