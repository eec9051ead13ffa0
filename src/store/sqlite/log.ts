import { open, type FileHandle } from 'node:fs/promises';
import { DomainError, messageOf } from '../../errors/errors.ts';
import { toFileError, type SqliteDatabase } from './binding.ts';

export type SqliteFile = 'log' | 'database';
/** Resolves once everything written to the file so far survives a power cut. */
export type Flush = (which: SqliteFile, file: FileHandle) => Promise<void>;

export interface LogParts {
  readonly file: string;
  readonly writer: SqliteDatabase;
  readonly reader: SqliteDatabase;
  /** Begins a transaction of the writer, as soon as no other process has one. */
  readonly begin: () => Promise<void>;
  readonly rollBack: () => void;
  readonly flush: Flush | undefined;
}

/**
 * `unflushed`: the log could not be flushed, after which the system may take what it lost for written.
 * `stuck`: the database file could not be flushed after the log was copied into it, so the log must stay as it is.
 */
type State = 'sound' | 'unflushed' | 'stuck';

/** SQLite moves a log of this many pages by itself, which blocks the event loop: only if `isLong` was far off. */
const MOVED_BY_SQLITE_PAGES = 4_000;
/** SQLite flushes nothing at a commit, only when it moves the log or begins it again. */
const USUAL_FLUSHES = `PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${MOVED_BY_SQLITE_PAGES}`;
const NO_FLUSHES = 'PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0';
const LONG_BYTES = 4 * 1024 * 1024;
/** The pages of a transaction that hold little that is new: indexes, counters. */
const OVERHEAD_BYTES = 32 * 1024;
/** Writes one page, the first, and changes nothing: 0 is what it is already. An equal value in a row is not written. */
const WRITE_ONE_PAGE = 'PRAGMA application_id = 0';

/**
 * Makes commits durable and moves the log into the database file. SQLite would flush files while the event loop waits;
 * here a thread of Node's pool does, in the order that SQLite relies on: the log before anything is copied from it, and
 * the database file before the log is overwritten.
 */
export class SqliteLog {
  readonly #parts: LogParts;
  readonly #log: FileHandle;
  /**
   * Open for as long as the connections are: closing any handle to this file releases the locks that SQLite has on it in
   * this process.
   */
  readonly #database: FileHandle;
  #state: State = 'sound';
  #bytes = 0;

  private constructor(parts: LogParts, log: FileHandle, database: FileHandle) {
    this.#parts = parts;
    this.#log = log;
    this.#database = database;
  }

  static async open(parts: LogParts): Promise<SqliteLog> {
    const { file, writer } = parts;
    writer.exec(USUAL_FLUSHES);
    try {
      return new SqliteLog(parts, await open(`${file}-wal`, 'r+'), await open(file, 'r+'));
    } catch (error) {
      throw toFileError(error, file);
    }
  }

  /** Whether it should be moved into the database file. An estimate: SQLite does not tell. */
  get isLong(): boolean {
    return this.#bytes > LONG_BYTES;
  }

  committed(bytes: number): void {
    this.#bytes += bytes + OVERHEAD_BYTES;
  }

  /** SQLite deletes the log with the last connection, and starts it over with the next write. */
  get mustStay(): boolean {
    return this.#state === 'stuck';
  }

  checkUsable(): void {
    if (this.mustStay) throw this.#unusable();
  }

  /** Makes everything committed so far survive a power cut. */
  async flush(): Promise<void> {
    if (this.#state === 'sound') return this.#flushLog();
    if (!(await this.move())) throw this.#notFlushed('another process is reading it');
    this.#state = 'sound';
  }

  /** Whether all of it was moved; another process that reads an older state prevents that. */
  async move(): Promise<boolean> {
    const { reader, begin, rollBack } = this.#parts;
    this.#bytes = 0;
    // No other process may add to the log what is copied before it is flushed, or start it over too early.
    await begin();
    try {
      await this.#flushLog();
      const [moved] = await withoutFlushes(reader, async () => reader.all('PRAGMA wal_checkpoint(PASSIVE)'));
      await this.#flushDatabase();
      if (moved?.['log'] !== moved?.['checkpointed']) return false;
    } finally {
      if (!this.mustStay) rollBack();
    }
    await this.#startOver();
    return true;
  }

  async close(): Promise<void> {
    await this.#log.close();
    await this.#database.close();
  }

  /**
   * The first write after the log was moved begins it again from the start, after flushing its new header. Without that
   * flush, a power cut could leave the beginning of the old log in front of new pages. With a single new page it cannot:
   * nothing of the old log is valid without its first page.
   */
  async #startOver(): Promise<void> {
    const { writer, begin, rollBack } = this.#parts;
    await withoutFlushes(writer, async () => {
      await begin();
      try {
        writer.exec(WRITE_ONE_PAGE);
        writer.exec('COMMIT');
      } catch (error) {
        rollBack();
        throw error;
      }
    });
    await this.#flushLog();
  }

  async #flushLog(): Promise<void> {
    try {
      await this.#flush('log', this.#log);
    } catch (error) {
      this.#state = 'unflushed';
      throw this.#notFlushed(messageOf(error), error);
    }
  }

  async #flushDatabase(): Promise<void> {
    try {
      await this.#flush('database', this.#database);
    } catch (error) {
      this.#state = 'stuck';
      throw this.#unusable(error);
    }
  }

  #flush(which: SqliteFile, file: FileHandle): Promise<void> {
    return this.#parts.flush ? this.#parts.flush(which, file) : file.datasync();
  }

  #notFlushed(why: string, cause?: unknown): DomainError {
    const message = `The store ${this.#parts.file} could not be flushed to the disk (${why}). It may not have been stored; try again once this is fixed.`;
    return new DomainError('UNAVAILABLE', message, { cause });
  }

  #unusable(cause?: unknown): DomainError {
    const message = `The store ${this.#parts.file} could not be flushed to the disk and is no longer written to. Restart the hub once the disk works again.`;
    return new DomainError('UNAVAILABLE', message, { cause });
  }
}

async function withoutFlushes<T>(database: SqliteDatabase, work: () => Promise<T>): Promise<T> {
  database.exec(NO_FLUSHES);
  try {
    return await work();
  } finally {
    database.exec(USUAL_FLUSHES);
  }
}
