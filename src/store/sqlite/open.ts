import { existsSync } from 'node:fs';
import { chmod, mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../errors/errors.ts';
import type { EventBounds, Store } from '../contract.ts';
import { migrate, MIGRATIONS } from '../sql/migrate.ts';
import { reportOnce } from '../sql/rows.ts';
import { createStore } from '../store.ts';
import { sqliteBackend } from './backend.ts';
import {
  loadSqlite,
  isBusy,
  isDamaged,
  toDomainError,
  toFileError,
  type OpenSqlite,
  type SqliteDatabase,
} from './binding.ts';
import type { Flush } from './log.ts';

export interface SqliteStoreOptions {
  /** In the state directory. */
  readonly file: string;
  /** Called with one line on where a damaged file was moved to, and on each row that cannot be read. */
  readonly warn: (line: string) => void;
  readonly bounds?: EventBounds;
  readonly now?: () => number;
  readonly lockWaitMs?: number;
  readonly migrations?: readonly string[];
  /** For tests: what the store writes through. */
  readonly onOpened?: (writer: SqliteDatabase) => void;
  /** For tests: a slow or failing disk. */
  readonly flush?: Flush;
}

/** Up to this size a full check at startup is not noticeable. */
const CHECKED_WHOLE_BYTES = 16 * 1024 * 1024;

export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { file, warn, bounds, now = Date.now, lockWaitMs = 5_000, migrations = MIGRATIONS, onOpened, flush } = options;
  const openSqlite = await loadSqlite();
  await prepareFile(file, now, warn);
  const writer = await openSound(openSqlite, options, migrations, lockWaitMs);
  onOpened?.(writer);
  const reader = connect(openSqlite, file);
  reader.exec('PRAGMA query_only = ON');
  const backend = await sqliteBackend({
    ...{ file, writer, reader, flush, now, lockWaitMs },
    onDamaged: () => void markDamaged(file),
    onUnreadable: reportOnce(warn),
  });
  return createStore(backend, bounds);
}

/** Private: it contains prompts, inputs and answers. SQLite gives `-wal` and `-shm` the same mode. */
async function prepareFile(file: string, now: () => number, warn: (line: string) => void): Promise<void> {
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    if (existsSync(marker(file))) await moveAside(file, now, warn);
    await refuseEmptied(file);
    await (await open(file, 'a', 0o600)).close();
    for (const part of parts(file)) if (existsSync(part)) await chmod(part, 0o600);
  } catch (error) {
    throw error instanceof DomainError ? error : toFileError(error, file);
  }
}

/**
 * SQLite would take the log of a file without content for a leftover and delete it, with everything that is only there.
 * The log is looked at first: a file that another process is just creating has content before its log has.
 */
async function refuseEmptied(file: string): Promise<void> {
  const log = `${file}-wal`;
  if ((await sizeOf(log)) === 0 || (await sizeOf(file)) > 0) return;
  throw new DomainError(
    'UNAVAILABLE',
    `The store ${file} is empty or missing, but its log ${log} is not: the file was truncated or replaced. ` +
      'Both were left untouched: restore the file from a backup, or move its log away to begin with an empty store.',
  );
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

/** A damaged file does not prevent startup: it is moved aside, and a new one is created. */
async function openSound(
  openSqlite: OpenSqlite,
  { file, warn, now = Date.now }: SqliteStoreOptions,
  migrations: readonly string[],
  lockWaitMs: number,
): Promise<SqliteDatabase> {
  try {
    return await openMigrated(openSqlite, file, migrations, lockWaitMs);
  } catch (error) {
    if (!isDamaged(error)) throw toDomainError(error, file);
  }
  await moveAside(file, now, warn);
  await prepareFile(file, now, warn);
  return openMigrated(openSqlite, file, migrations, lockWaitMs);
}

async function openMigrated(
  openSqlite: OpenSqlite,
  file: string,
  migrations: readonly string[],
  lockWaitMs: number,
): Promise<SqliteDatabase> {
  const database = connect(openSqlite, file);
  try {
    // While several processes create the same file, none has anything else to do: blocking is fine here.
    database.exec(`PRAGMA busy_timeout = ${lockWaitMs}`);
    database.exec('PRAGMA auto_vacuum = INCREMENTAL');
    await enterWal(database, lockWaitMs);
    if ((await stat(file)).size < CHECKED_WHOLE_BYTES) checkWhole(database);
    database.exec('BEGIN IMMEDIATE');
    const query = async (text: string, parameters: readonly (string | number | null)[] = []) =>
      database.all(text, parameters);
    await migrate({ query }, async (script) => database.exec(script), migrations);
    database.exec('COMMIT');
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  } catch (error) {
    discard(database);
    throw error;
  }
}

/** `libsql` keeps a closed connection, with its locks, until it is garbage-collected. */
function discard(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // There was no transaction.
  }
  database.close();
}

/** SQLite does not wait by itself for others that switch the same new file to WAL. */
async function enterWal(database: SqliteDatabase, lockWaitMs: number): Promise<void> {
  const giveUpAt = performance.now() + lockWaitMs;
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      database.exec('PRAGMA journal_size_limit = 16777216');
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpAt) throw error;
    }
    await delay(10);
  }
}

function connect(openSqlite: OpenSqlite, file: string): SqliteDatabase {
  try {
    return openSqlite(file);
  } catch (error) {
    throw isDamaged(error) ? error : toFileError(error, file);
  }
}

function checkWhole(database: SqliteDatabase): void {
  const [row] = database.all('PRAGMA quick_check(1)');
  const found = Object.values(row ?? {})[0];
  if (found !== 'ok') throw Object.assign(new Error(String(found)), { errcode: 11 });
}

async function moveAside(file: string, now: () => number, warn: (line: string) => void): Promise<void> {
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, '-');
  const aside = `${file}.damaged-${stamp}`;
  try {
    for (const part of parts(file)) if (existsSync(part)) await rename(part, part.replace(file, aside));
    await rm(marker(file), { force: true });
  } catch (error) {
    throw toFileError(error, file);
  }
  warn(`The store ${file} was damaged; it was moved to ${aside} and a new one was created.`);
}

/** Damage detected while the store is in use: most of it still works, so it is moved aside at the next start. */
async function markDamaged(file: string): Promise<void> {
  await writeFile(marker(file), '', { mode: 0o600 }).catch(() => {});
}

function parts(file: string): string[] {
  return [file, `${file}-wal`, `${file}-shm`];
}

function marker(file: string): string {
  return `${file}-damaged`;
}
