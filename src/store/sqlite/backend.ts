import { setTimeout as delay } from 'node:timers/promises';
import type { SqlConnection } from '../sql/connection.ts';
import { SqlReads } from '../sql/reads.ts';
import type { ReportUnreadable } from '../sql/rows.ts';
import { SqlTables } from '../sql/tables.ts';
import { SerialQueue } from '../serial-queue.ts';
import type { Backend, Durability } from '../backend.ts';
import { WakeUps } from '../wake-ups.ts';
import type { SqliteDatabase } from './binding.ts';
import { isBusy, isDamaged, toDomainError } from './errors.ts';

export interface SqliteParts {
  readonly file: string;
  readonly writer: SqliteDatabase;
  /** A separate connection sees committed data, even while a write waits for a lock. */
  readonly reader: SqliteDatabase;
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
 * The binding is synchronous: a statement blocks the event loop for as long as it takes, so none takes long, and lock
 * waits happen between attempts.
 */
export function sqliteBackend(parts: SqliteParts): Backend {
  const { file, writer, reader, now, lockWaitMs, onDamaged, onUnreadable } = parts;
  const queue = new SerialQueue();
  const wakeUps = new WakeUps();
  let synchronous: Durability | undefined;
  let closed: Promise<void> | undefined;

  const connection = (database: SqliteDatabase): SqlConnection => ({
    dialect: sqliteDialect,
    query: async (text, parameters) => checked(() => database.all(text, parameters)),
    run: async (text, parameters) => void checked(() => database.all(text, parameters)),
    now: async () => now(),
  });
  const tables = new SqlTables(connection(writer), onUnreadable);

  function checked<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (isDamaged(error)) onDamaged();
      throw toDomainError(error, file);
    }
  }

  async function begin(durability: Durability): Promise<void> {
    if (durability !== synchronous) {
      checked(() => writer.exec(`PRAGMA synchronous = ${durability === 'durable' ? 'FULL' : 'NORMAL'}`));
      synchronous = durability;
    }
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

  /** SQLite does so with the last connection, which `libsql` closes only when it is garbage-collected. */
  function moveLogIntoFile(): void {
    try {
      writer.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // The next start reads the log too.
    }
  }

  return {
    kind: 'sqlite',
    reads: new SqlReads(connection(reader), onUnreadable),
    transact: (durability, work) =>
      queue.run(async () => {
        await begin(durability);
        try {
          const result = await work(tables);
          checked(() => writer.exec('COMMIT'));
          if (durability !== 'quiet') wakeUps.wake();
          return result;
        } catch (error) {
          rollBack();
          throw error;
        }
      }),
    giveBackSpace: () =>
      queue.run(async () => checked(() => writer.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`))),
    subscribe: (wake) => wakeUps.subscribe(wake),
    close: () =>
      (closed ??= queue.run(async () => {
        wakeUps.clear();
        reader.close();
        moveLogIntoFile();
        writer.close();
      })),
  };
}

const sqliteDialect: SqlConnection['dialect'] = {
  lock: { update: '', share: '', skipTaken: () => '' },
  contains: (column) => `instr(${column}, ?) > 0`,
  rowsPerInsert: 1,
};
