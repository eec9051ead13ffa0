import type pg from 'pg';
import { SerialQueue } from '../serial-queue.ts';

export interface SideConnectionOptions {
  readonly connect: () => pg.Client;
  readonly schema: string;
}

/** One connection for what must not wait until the pool has one free. Lost or too slow, it is replaced with the next use. */
export class SideConnection {
  readonly #options: SideConnectionOptions;
  readonly #queue = new SerialQueue();
  #client: pg.Client | undefined;
  #closed = false;

  constructor(options: SideConnectionOptions) {
    this.#options = options;
  }

  transact<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      const client = await this.#connected();
      try {
        await client.query('BEGIN');
        // It is done again and again: the next one makes up for one that a power cut takes back.
        await client.query('SET LOCAL synchronous_commit = off');
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        // Whatever it was, a new connection begins with nothing left over.
        this.#drop(client);
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#queue.idle();
    if (this.#client) await this.#client.end().catch(() => {});
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client) return this.#client;
    if (this.#closed) throw new Error('The store is closed.');
    const client = this.#options.connect();
    client.on('error', () => this.#drop(client));
    client.on('end', () => this.#drop(client));
    try {
      await client.connect();
      await client.query(`SET search_path TO "${this.#options.schema}"`);
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    this.#client = client;
    return client;
  }

  /** Nobody waits for the end of a connection that may be lost. */
  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    void client.end().catch(() => {});
  }
}
