import type pg from 'pg';
import { SerialQueue } from '../serial-queue.ts';

/**
 * One connection for operations that must not wait for the pool. If lost or too slow, it is replaced on the next use.
 * Each use is one statement, and so one round trip: on a slow line several would take too long.
 */
export class SideConnection {
  readonly #connect: () => pg.Client;
  readonly #queue = new SerialQueue();
  #client: pg.Client | undefined;
  #closed = false;

  constructor(connect: () => pg.Client) {
    this.#connect = connect;
  }

  query<Row extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<Row[]> {
    return this.#queue.run(async () => {
      const client = await this.#connected();
      try {
        return (await client.query<Row>(text, values)).rows;
      } catch (error) {
        // In any case, a new connection starts with nothing left over.
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
    const client = this.#connect();
    client.on('error', () => this.#drop(client));
    client.on('end', () => this.#drop(client));
    try {
      await client.connect();
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    this.#client = client;
    return client;
  }

  /** A connection that may be lost is not waited for. */
  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    void client.end().catch(() => {});
  }
}
