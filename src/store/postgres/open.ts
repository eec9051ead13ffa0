import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { DomainError, isUnavailable, messageOf } from '../../errors/errors.ts';
import {
  StoreUncertain,
  type Backend,
  type Durability,
  type EventBounds,
  type Store,
  type StoreNews,
} from '../contract.ts';
import type { Dialect, SqlConnection, SqlRow, SqlValue } from '../sql/connection.ts';
import { migrate, MIGRATIONS } from '../sql/migrate.ts';
import { SqlReads } from '../sql/reads.ts';
import { reportOnce, toLease } from '../sql/rows.ts';
import { SqlTables } from '../sql/tables.ts';
import { createStore } from '../store.ts';
import { ANYTHING, WakeUps } from '../wake-ups.ts';
import { Listener, SideConnection } from './listener.ts';

export interface PostgresStoreOptions {
  readonly url: string;
  /** Shared by all hubs of one service. */
  readonly schema?: string;
  readonly bounds?: EventBounds;
  /** Called with one line on each row that cannot be read. */
  readonly warn?: (line: string) => void;
  /** For tests: a clock other than Postgres's own. */
  readonly now?: () => number;
  readonly connections?: number;
  /** How long anything may take before the connection counts as lost. */
  readonly timeoutMs?: number;
  readonly migrations?: readonly string[];
}

const MAX_TRIES = 8;
/** Operations that wait for no one else do not wait for a lost connection either. */
const SIDE_MS = 2_000;
/** A new connection takes several round trips, even on a slow line. */
const SIDE_CONNECT_MS = 3_000;
/** A hub that hangs, or whose line is dead, must not keep the others waiting for its transaction's locks. */
const IDLE_IN_TRANSACTION_MS = 5_000;
/** "ccm store", as a number: any that no one else uses. */
const MIGRATION_LOCK = 0x63636d73;

const dialect: Dialect = {
  lock: {
    update: ' FOR UPDATE',
    // Renewing a lease changes no key of its row, so it does not wait for writes that depend on it.
    share: ' FOR KEY SHARE',
    skipTaken: (table) => ` FOR UPDATE OF ${table} SKIP LOCKED`,
  },
  contains: (column) => `strpos(${column}, ?) > 0`,
  rowsPerInsert: 100,
};

export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { url, schema = 'claude_code_mcp', bounds, now, connections = 10, timeoutMs = 10_000 } = options;
  const settings: pg.ClientConfig = {
    connectionString: url,
    application_name: 'claude-code-mcp',
    options: `-c search_path="${schema}" -c idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    keepAlive: true,
    types: { getTypeParser: typeParser },
  };
  const pool = new pg.Pool({ ...settings, max: connections, pipeline: true });
  // Losing an unused connection is not an error; the pool makes another one.
  pool.on('error', () => {});
  pool.on('connect', (client) => {
    // Nor is losing one in a transaction, between two statements: the next statement fails.
    client.on('error', () => {});
  });
  try {
    await prepareSchema(pool, schema, options.migrations ?? MIGRATIONS);
  } catch (error) {
    await pool.end();
    throw toDomainError(error);
  }
  const self = randomUUID();
  const onUnreadable = reportOnce(options.warn ?? (() => undefined));
  const wakeUps = new WakeUps();
  const channel = `${schema} stored`;
  const notify = (news: StoreNews): string =>
    `SELECT pg_notify(${pg.escapeLiteral(channel)}, ${pg.escapeLiteral(`${self} ${JSON.stringify(news)}`)})`;
  const listener = new Listener({
    connect: () => new pg.Client(settings),
    channel,
    // Our own writes already woke everyone here when they were stored.
    onNotified: (payload) => {
      if (payload?.startsWith(self) !== true) wakeUps.wake(newsIn(payload));
    },
  });
  await listener.start();

  const aside = new SideConnection(
    () =>
      new pg.Client({
        ...settings,
        // A lease is renewed repeatedly: the next renewal makes up for one lost in a power cut.
        options: '-c synchronous_commit=off',
        connectionTimeoutMillis: SIDE_CONNECT_MS,
        query_timeout: SIDE_MS,
      }),
  );
  const renewal = `UPDATE "${schema}".leases
      SET data = (data::jsonb || jsonb_build_object('info', $4::jsonb, 'expiresAt',
            $3 + coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)))::text
    WHERE hub = $1 AND (data::jsonb ->> 'fence')::bigint = $2 RETURNING data`;
  const renewLease: Backend['renewLease'] = async ({ hub, fence }, ttlMs, info) => {
    const values = [hub, fence, ttlMs, JSON.stringify(info), now?.() ?? null];
    const [row] = await asked(aside.query<SqlRow>(renewal, values));
    return row && toLease(row);
  };

  const transactOnce = async <T>(
    durability: Durability,
    work: (tables: SqlTables) => Promise<T>,
  ): Promise<{ result: T; news: StoreNews | undefined }> => {
    const client = await connected(pool);
    let failure: Error | undefined;
    // Statements without a result are not awaited one by one: others wait for this transaction's locks.
    const ahead: Promise<unknown>[] = [];
    // Not among the types of `pg`, which has no other way to hold statements back.
    const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection;
    const send = (text: string, parameters: readonly SqlValue[] = []): Promise<unknown> => {
      sendTogether(stream);
      const response = client.query(text, [...parameters]);
      response.catch(() => {});
      return response;
    };
    try {
      ahead.push(send(durability === 'durable' ? 'BEGIN' : 'BEGIN; SET LOCAL synchronous_commit = off'));
      const run: SqlConnection['run'] = async (text, parameters) => void ahead.push(send(numbered(text), parameters));
      const tables = new SqlTables({ ...connection(client, now), run }, onUnreadable);
      const result = await work(tables);
      const news = durability === 'quiet' ? undefined : tables.news;
      const committed = send(news ? `${notify(news)}; COMMIT` : 'COMMIT');
      await Promise.all(ahead).catch(refusedOrUncertain);
      await asked(committed).catch(uncertain);
      return { result, news };
    } catch (error) {
      // A connection that cannot roll back is discarded, and Postgres rolls back what it lost.
      await client.query('ROLLBACK').catch((cause: unknown) => (failure = cause as Error));
      throw error;
    } finally {
      client.release(failure);
    }
  };

  const transact: Backend['transact'] = async (durability, work) => {
    for (let attempt = 1; ; attempt++) {
      try {
        const { result, news } = await transactOnce(durability, work);
        if (news) wakeUps.wake(news);
        return result;
      } catch (error) {
        if (!isRetryable(error) || attempt === MAX_TRIES) throw error;
      }
      await delay(Math.random() * 5 * attempt);
    }
  };

  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    wakeUps.clear();
    await Promise.all([listener.close(), aside.close()]);
    await pool.end();
  };
  const backend: Backend = {
    kind: 'postgres',
    reads: new SqlReads(connection(pool, now), onUnreadable),
    transact,
    renewLease,
    subscribe: (wake) => wakeUps.subscribe(wake),
    close: () => (closed ??= close()),
  };
  return createStore(backend, bounds);
}

function connection(on: pg.Pool | pg.ClientBase, now: (() => number) | undefined): SqlConnection {
  const query = async (text: string, parameters: readonly SqlValue[] = []): Promise<SqlRow[]> =>
    (await asked(on.query<SqlRow>(numbered(text), [...parameters]))).rows;
  const clock = async (): Promise<number> => {
    const [row] = await query('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now');
    return Number(row?.['now']);
  };
  const run: SqlConnection['run'] = async (text, parameters) => {
    await query(text, parameters);
  };
  return { dialect, query, run, now: now ? async () => now() : clock };
}

/** Concurrent starts on an empty database wait for the first. */
async function prepareSchema(pool: pg.Pool, schema: string, migrations: readonly string[]): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    const { rowCount } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
    if (rowCount === 0) await client.query(`CREATE SCHEMA "${schema}"`);
    const run = async (script: string): Promise<void> => {
      // Text sorts by bytes, as in SQLite and JavaScript.
      await client.query(script.replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"'));
    };
    await migrate(connection(client, undefined), run, migrations);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch((cause: unknown) => (failure = cause as Error));
    throw error;
  } finally {
    client.release(failure);
  }
}

/** Everything written in this tick goes out as one packet, so that Postgres and this process each wake up once. */
function sendTogether(stream: Socket): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

async function connected(pool: pg.Pool): Promise<pg.PoolClient> {
  return asked(pool.connect());
}

async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw toDomainError(error);
  }
}

/** One of another version may say less: then it may be anything. */
function newsIn(payload = ''): StoreNews {
  try {
    return { ...ANYTHING, ...(JSON.parse(payload.slice(payload.indexOf('{'))) as Partial<StoreNews>) };
  } catch {
    return ANYTHING;
  }
}

/** For statements sent along with the commit: one that Postgres refused was rolled back, any other may be stored. */
function refusedOrUncertain(error: unknown): never {
  if (isResponse(error)) throw toDomainError(error);
  uncertain(toDomainError(error));
}

/** Lost in the middle of a commit. */
function uncertain(error: unknown): never {
  throw isUnavailable(error) ? new StoreUncertain(error) : error;
}

const numberedTexts = new Map<string, string>();

/** `?` to `$1`, `$2` …; none of our statements has a question mark elsewhere. */
function numbered(text: string): string {
  const known = numberedTexts.get(text);
  if (known !== undefined) return known;
  let count = 0;
  const result = text.replaceAll('?', () => `$${++count}`);
  if (numberedTexts.size >= 500) numberedTexts.clear();
  numberedTexts.set(text, result);
  return result;
}

const INT8 = 20;

/** Times and positions stay far below 2^53, so a number is enough. */
function typeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  return oid === INT8 ? Number : (pg.types.getTypeParser(oid, format) as (value: string) => unknown);
}

/**
 * https://www.postgresql.org/docs/current/errcodes-appendix.html: lost, refused, out of room, shut down, read-only,
 * given up.
 */
const UNAVAILABLE = /^(08|28|3D|53|57P|25006|25P03|57014|58|42501)/;
/** Two transactions conflicted, or both created the same new row: the second attempt sees what the first did. */
const AGAIN = /^(40001|40P01|23505)$/;

function isRetryable(error: unknown): boolean {
  return AGAIN.test(sqlState(error) ?? '');
}

/** Errors from Postgres or the connection to it. One without a SQLSTATE is a connection error. */
function toDomainError(error: unknown): unknown {
  if (error instanceof DomainError) return error;
  const state = sqlState(error);
  if (state === '22021') {
    return new DomainError('INVALID_ARGUMENT', 'Text with a NUL character cannot be stored or searched for.', {
      cause: error,
    });
  }
  if (state !== undefined && !UNAVAILABLE.test(state)) return error;
  return new DomainError(
    'UNAVAILABLE',
    `Postgres is unavailable (${messageOf(error) || 'connection lost'}). Try again; anything unconfirmed may be resent.`,
    { cause: error },
  );
}

/** As opposed to a lost connection. */
function isResponse(error: unknown): boolean {
  return sqlState(error) !== undefined;
}

function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error)) return undefined;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
