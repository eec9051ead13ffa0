/**
 * SQLite without compiling or downloading anything: Node's own where available (22.13 and later), the prebuilt `libsql`
 * on Node 20. Both read the same files, have the methods used here, and report SQLite's own result codes. `libsql` can
 * go when Node 20 support ends.
 */

import { DomainError, messageOf } from '../../errors/errors.ts';
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
  try {
    return ((await import(NODE_SQLITE)) as { DatabaseSync: RawConstructor }).DatabaseSync;
  } catch {
    return undefined;
  }
}

export async function libsql(): Promise<RawConstructor> {
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
