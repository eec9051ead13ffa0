import { TranscriptEntry, type TranscriptPart } from '../../schema/store.ts';
import { inChunks, insertRows, slots, type SqlConnection } from './connection.ts';

const COLUMNS = ['session_id', 'subpath', 'position', 'uuid', 'data'] as const;
const OF_PART = 'session_id = ? AND subpath = ?';

export interface TranscriptRow {
  readonly position: number;
  readonly uuid: string | undefined;
  readonly json: string;
}

export class SqlTranscripts {
  readonly #sql: SqlConnection;

  constructor(sql: SqlConnection) {
    this.#sql = sql;
  }

  /** 0 if there is none. */
  async lastPosition({ sessionId, subpath = '' }: TranscriptPart): Promise<number> {
    const text = `SELECT MAX(position) AS last FROM transcripts WHERE ${OF_PART}`;
    const [row] = await this.#sql.query(text, [sessionId, subpath]);
    return Number(row?.['last'] ?? 0);
  }

  /** Those that the part already has. */
  async knownUuids({ sessionId, subpath = '' }: TranscriptPart, uuids: readonly string[]): Promise<Set<string>> {
    const known = new Set<string>();
    for (const some of inChunks(uuids, 500)) {
      const text = `SELECT uuid FROM transcripts WHERE ${OF_PART} AND uuid IN (${slots(some)})`;
      for (const row of await this.#sql.query(text, [sessionId, subpath, ...some])) known.add(String(row['uuid']));
    }
    return known;
  }

  async add({ sessionId, subpath = '' }: TranscriptPart, rows: readonly TranscriptRow[]): Promise<void> {
    const values = rows.map(({ position, uuid = null, json }) => [sessionId, subpath, position, uuid, json]);
    await insertRows(this.#sql, 'transcripts', COLUMNS, values);
  }

  async remove({ sessionId, subpath = '' }: TranscriptPart): Promise<void> {
    await this.#sql.run(`DELETE FROM transcripts WHERE ${OF_PART}`, [sessionId, subpath]);
  }

  async transcript({ sessionId, subpath = '' }: TranscriptPart): Promise<TranscriptEntry[] | undefined> {
    const text = `SELECT data FROM transcripts WHERE ${OF_PART} ORDER BY position`;
    const rows = await this.#sql.query(text, [sessionId, subpath]);
    return rows.length === 0 ? undefined : rows.map((row) => TranscriptEntry.parse(JSON.parse(String(row['data']))));
  }

  async transcriptSubpaths(sessionId: string): Promise<string[]> {
    const text = `SELECT DISTINCT subpath FROM transcripts WHERE session_id = ? AND subpath <> '' ORDER BY subpath`;
    return (await this.#sql.query(text, [sessionId])).map((row) => String(row['subpath']));
  }
}
