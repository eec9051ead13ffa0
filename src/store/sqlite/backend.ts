import { setTimeout as delay } from 'node:timers/promises';
import type { SqlConnection, SqlValue } from '../sql/connection.ts';
import { SqlReads } from '../sql/reads.ts';
import type { ReportUnreadable } from '../sql/rows.ts';
import { SqlTables } from '../sql/tables.ts';
import { SerialQueue } from '../serial-queue.ts';
import type { Backend } from '../contract.ts';
import { WakeUps } from '../wake-ups.ts';
import { isBusy, isDamaged, toDomainError, type SqliteDatabase } from './binding.ts';
import { SqliteLog, type Flush } from './log.ts';

export interface SqliteParts {
  readonly file: string;
  readonly writer: SqliteDatabase;
  /** A separate connection sees committed data, even while a write waits for a lock. */
  readonly reader: SqliteDatabase;
  /** For tests: what flushes a file. */
  readonly flush: Flush | undefined;
  readonly now: () => number;
  /** How long a write waits for another process, such as `token create`. */
  readonly lockWaitMs: number;
  readonly onDamaged: () => void;
  readonly onUnreadable: ReportUnreadable;
}

const LOCK_RETRY_MS = 25;
/** About 4 MB: released to the file system after deletions. */
const VACUUM_PAGES = 1000;

/**
 * The binding is synchronous: a statement blocks the event loop for as long as it takes. So none takes long, none waits
 * for the disk, and lock waits happen between attempts.
 */
export async function sqliteBackend(parts: SqliteParts): Promise<Backend> {
  const { file, writer, reader, flush, now, lockWaitMs, onDamaged, onUnreadable } = parts;
  const queue = new SerialQueue();
  const wakeUps = new WakeUps();
  const log = await SqliteLog.open({ file, writer, reader, begin, rollBack, flush });
  /** Never rejects. */
  let flushing: Promise<unknown> | undefined;
  let writtenBytes = 0;
  let closed: Promise<void> | undefined;

  const writing: SqlConnection = {
    dialect: sqliteDialect,
    query: async (text, parameters) => checked(() => writer.all(text, parameters)),
    run: async (text, parameters = []) => {
      writtenBytes += lengthOf(parameters);
      checked(() => writer.all(text, parameters));
    },
    now: async () => now(),
  };
  const reading: SqlConnection = {
    ...writing,
    query: async (text, parameters) => {
      // Nobody is told what a power cut could still take back.
      while (flushing) await flushing;
      return checked(() => reader.all(text, parameters));
    },
  };
  const tables = new SqlTables(writing, onUnreadable);

  function checked<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (isDamaged(error)) onDamaged();
      throw toDomainError(error, file);
    }
  }

  async function begin(): Promise<void> {
    const giveUpAt = performance.now() + lockWaitMs;
    for (;;) {
      try {
        writer.exec('BEGIN IMMEDIATE');
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAt) throw toDomainError(error, file);
      }
      await delay(LOCK_RETRY_MS);
    }
  }

  function rollBack(): void {
    try {
      writer.exec('ROLLBACK');
    } catch {
      // A full disk or a disk error has already ended the transaction.
    }
  }

  async function commit<T>(work: (tables: SqlTables) => Promise<T>): Promise<T> {
    log.checkUsable();
    await begin();
    try {
      writtenBytes = 0;
      const result = await work(tables);
      checked(() => writer.exec('COMMIT'));
      log.committed(writtenBytes);
      return result;
    } catch (error) {
      rollBack();
      throw error;
    }
  }

  async function flushLog(): Promise<void> {
    const flushed = log.flush();
    flushing = flushed.catch(() => {});
    try {
      await flushed;
    } finally {
      flushing = undefined;
    }
  }

  /** If it fails, it is tried again after as many more writes. */
  async function moveLog(): Promise<void> {
    try {
      await log.move();
    } catch (error) {
      if (isDamaged(error)) onDamaged();
    }
  }

  async function moveLongLog(): Promise<void> {
    if (log.isLong) await moveLog();
  }

  /** SQLite does so with the last connection, which `libsql` closes only when it is garbage-collected. */
  function emptyLog(): void {
    try {
      writer.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // The next start reads the log too.
    }
  }

  return {
    kind: 'sqlite',
    reads: new SqlReads(reading, onUnreadable),
    transact: (durability, work) =>
      queue.run(async () => {
        const result = await commit(work);
        if (durability === 'durable') await flushLog();
        if (durability !== 'quiet') wakeUps.wake();
        if (log.isLong) void queue.run(moveLongLog);
        return result;
      }),
    giveBackSpace: () =>
      queue.run(async () => {
        checked(() => writer.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`));
        // Deletions and freed pages are most of the log by now, and are not in its estimated length.
        await moveLog();
      }),
    subscribe: (wake) => wakeUps.subscribe(wake),
    close: () =>
      (closed ??= queue.run(async () => {
        wakeUps.clear();
        reader.close();
        if (!log.mustStay) {
          emptyLog();
          writer.close();
        }
        await log.close();
      })),
  };
}

function lengthOf(values: readonly SqlValue[]): number {
  return values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}

const sqliteDialect: SqlConnection['dialect'] = {
  lock: { update: '', share: '', skipTaken: () => '' },
  contains: (column) => `instr(${column}, ?) > 0`,
  rowsPerInsert: 1,
};
