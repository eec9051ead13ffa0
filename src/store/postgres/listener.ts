import type pg from 'pg';
import { SerialQueue } from '../serial-queue.ts';

export interface ListenerOptions {
  readonly connect: () => pg.Client;
  readonly channel: string;
  /** Also after every reconnect, because notifications in between were missed. */
  readonly onNotified: (payload: string | undefined) => void;
  readonly checkEveryMs?: number;
}

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;

/** One listening connection, reopened whenever it is lost, for as long as the store is open. */
export class Listener {
  readonly #options: ListenerOptions;
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retryMs = FIRST_RETRY_MS;
  #closed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Resolves when it listens, or has started to retry. */
  async start(): Promise<void> {
    const client = this.#options.connect();
    this.#client = client;
    client.on('error', () => this.#lost(client));
    client.on('end', () => this.#lost(client));
    client.on('notification', ({ payload }) => this.#options.onNotified(payload));
    try {
      await client.connect();
      await client.query(`LISTEN "${this.#options.channel}"`);
    } catch {
      this.#lost(client);
      return;
    }
    if (this.#closed) {
      await client.end();
      return;
    }
    this.#retryMs = FIRST_RETRY_MS;
    this.#options.onNotified(undefined);
    this.#schedule(() => void this.#check(client), this.#options.checkEveryMs ?? 15_000);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(() => {});
  }

  /** A connection whose other end has vanished stays silent forever; only a query reveals it. */
  async #check(client: pg.Client): Promise<void> {
    try {
      await client.query('SELECT 1');
      if (this.#client === client) {
        this.#schedule(() => void this.#check(client), this.#options.checkEveryMs ?? 15_000);
      }
    } catch {
      this.#lost(client);
    }
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    // Ends by itself if it can; a lost connection is not waited for.
    void client.end().catch(() => {});
    this.#schedule(() => void this.start(), this.#retryMs);
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
  }

  #schedule(work: () => void, ms: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(work, ms);
    this.#timer.unref();
  }
}

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
