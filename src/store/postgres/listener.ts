import type pg from 'pg';

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
