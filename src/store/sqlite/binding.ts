/**
 * SQLite without compiling or downloading anything: Node's own where available (22.13 and later), the prebuilt `libsql`
 * on Node 20. Both read the same files, have the methods used here, and report SQLite's own result codes. `libsql` can
 * go when Node 20 support ends.
 */

import { DomainError, messageOf, ownFileProblem } from '../../errors/errors.ts';
import type { SqlRow, SqlValue } from '../sql/connection.ts';

export interface SqliteDatabase {
  /** Several statements, no parameters. */
  exec(script: string): void;
  all(text: string, parameters?: readonly SqlValue[]): SqlRow[];
  close(): void;
}

export type OpenSqlite = (file: string) => SqliteDatabase;

interface RawDatabase {
  exec(script: string): unknown;
  prepare(text: string): RawStatement;
  close(): void;
}

interface RawStatement {
  /** Only `libsql` has it, and only there must a statement without rows be run differently. */
  readonly reader?: boolean;
  all(...parameters: SqlValue[]): SqlRow[];
  run(...parameters: SqlValue[]): unknown;
}

type RawConstructor = new (file: string) => RawDatabase;

const NODE_SQLITE = 'node:sqlite';
const MAX_PREPARED = 200;

export async function loadSqlite(): Promise<OpenSqlite> {
  const Database = (await nodeSqlite()) ?? (await libsql());
  return (file) => wrap(new Database(file));
}

/** The types of the oldest supported Node do not include the module. */
async function nodeSqlite(): Promise<RawConstructor | undefined> {
  const emitWarning = process.emitWarning.bind(process);
  // Node 22 says on stderr that the module is experimental, which no user could do anything about.
  process.emitWarning = (warning: string | Error, ...rest: never[]) => {
    if (!String(warning).startsWith('SQLite')) emitWarning(warning, ...rest);
  };
  try {
    return ((await import(NODE_SQLITE)) as { DatabaseSync: RawConstructor }).DatabaseSync;
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function libsql(): Promise<RawConstructor> {
  try {
    return (await import('libsql')).default as unknown as RawConstructor;
  } catch (error) {
    throw new DomainError(
      'UNAVAILABLE',
      `This Node has no SQLite and the libsql package cannot be loaded (${messageOf(error)}). Use Node 22.13 or later, or --store postgres://…`,
      { cause: error },
    );
  }
}

function wrap(database: RawDatabase): SqliteDatabase {
  const prepared = new Map<string, RawStatement>();
  const prepare = (text: string): RawStatement => {
    const known = prepared.get(text);
    if (known) return known;
    if (prepared.size >= MAX_PREPARED) prepared.clear();
    const statement = database.prepare(text);
    prepared.set(text, statement);
    return statement;
  };
  return {
    exec: (script) => void database.exec(script),
    all: (text, parameters = []) => {
      const statement = prepare(text);
      if (statement.reader !== false) return statement.all(...parameters);
      statement.run(...parameters);
      return [];
    },
    close: () => {
      prepared.clear();
      database.close();
    },
  };
}

/** https://www.sqlite.org/rescode.html */
const UNAVAILABLE: Readonly<Record<number, string>> = {
  3: 'is not accessible to this user',
  5: 'is locked by another process',
  6: 'is locked by another process',
  7: 'does not fit into memory',
  8: 'is not writable: the file, directory or file system is read-only',
  10: 'cannot be read or written: the disk reports an error',
  13: 'is full: no space left on the disk',
  14: 'cannot be opened',
};
const BUSY: ReadonlySet<number | undefined> = new Set([5, 6]);
const DAMAGED: ReadonlySet<number | undefined> = new Set([11, 26]);

export function isBusy(error: unknown): boolean {
  return BUSY.has(resultCode(error));
}

export function isDamaged(error: unknown): boolean {
  return DAMAGED.has(resultCode(error));
}

/** Errors the caller can act on; anything else is passed through. */
export function toDomainError(error: unknown, file: string): unknown {
  const code = resultCode(error);
  if (isDamaged(error)) {
    return unavailable(`The store ${file} is damaged. The next start moves it aside and creates a new one.`, error);
  }
  const problem = code === undefined ? undefined : UNAVAILABLE[code];
  return problem === undefined
    ? error
    : unavailable(`The store ${file} ${problem}. Nothing was stored; try again once this is fixed.`, error);
}

export function toFileError(error: unknown, file: string): DomainError {
  const why = messageOf(ownFileProblem(error) ?? error);
  return unavailable(`The store ${file} cannot be opened: ${why}`, error);
}

function unavailable(message: string, cause: unknown): DomainError {
  return new DomainError('UNAVAILABLE', message, { cause });
}

/** The extended codes of one family share the lowest byte. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode } = error as { errcode?: unknown; rawCode?: unknown };
  const code = errcode ?? rawCode;
  return typeof code === 'number' ? code & 0xff : undefined;
}
