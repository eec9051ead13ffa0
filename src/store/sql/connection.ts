/** What the shared SQL needs from a database, and the few places where SQLite and Postgres differ. */

export type SqlValue = string | number | null;
export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlConnection {
  readonly dialect: Dialect;
  /** Parameters are `?`, in order. */
  readonly query: (text: string, parameters?: readonly SqlValue[]) => Promise<SqlRow[]>;
  /** For a change without a result. It may be sent together with the next statements; if it fails, so does the commit. */
  readonly run: (text: string, parameters?: readonly SqlValue[]) => Promise<void>;
  /** The database's clock, in milliseconds since 1970. */
  now(): Promise<number>;
}

export interface Dialect {
  /** In SQLite a writer locks the whole file; in Postgres the rows that a write depends on are locked. */
  readonly lock: { readonly update: string; readonly share: string; readonly skipTaken: (table: string) => string };
  /** Whether a column contains the parameter. */
  contains(column: string): string;
  /** A constant statement is prepared once; one for many rows saves round trips. */
  readonly rowsPerInsert: number;
}

/** `?, ?, ?` */
export function slots(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/** Inserts rows; one whose `key` is taken replaces the other columns, or is a unique violation without `key`. */
export async function insertRows(
  { run, dialect }: SqlConnection,
  table: string,
  columns: readonly string[],
  rows: readonly (readonly SqlValue[])[],
  key?: { readonly columns: readonly string[]; readonly keep?: readonly string[] },
): Promise<void> {
  const untouched = new Set([...(key?.columns ?? []), ...(key?.keep ?? [])]);
  const updates = columns.filter((column) => !untouched.has(column)).map((column) => `${column} = excluded.${column}`);
  const onConflict = key ? ` ON CONFLICT (${key.columns.join(', ')}) DO UPDATE SET ${updates.join(', ')}` : '';
  for (let start = 0; start < rows.length; start += dialect.rowsPerInsert) {
    const chunk = rows.slice(start, start + dialect.rowsPerInsert);
    const values = chunk.map((row) => `(${slots(row)})`).join(', ');
    await run(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${values}${onConflict}`, chunk.flat());
  }
}

/** A statement accepts only so many parameters. */
export function* inChunks<T>(values: readonly T[], size: number): Generator<T[]> {
  for (let start = 0; start < values.length; start += size) yield values.slice(start, start + size);
}
