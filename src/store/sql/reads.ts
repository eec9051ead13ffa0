/** Every read is one statement, so that it sees a consistent snapshot of the store. */

import {
  TranscriptEntry,
  type HubRef,
  type StoredLease,
  type StoredRequest,
  type StoredSession,
  type TranscriptPart,
} from '../../schema/store.ts';
import {
  MAX_FEED_BYTES,
  type EventPage,
  type FeedPage,
  type FeedQuery,
  type InboxQuery,
  type Page,
  type SessionQuery,
  type SettledQuery,
  type StoreReads,
} from '../contract.ts';
import { fromCursor, toPage, type PageEnd } from '../row-facts.ts';
import { slots, inChunks, insertRows, type SqlConnection, type SqlRow, type SqlValue } from './connection.ts';
import {
  readEach,
  readOne,
  toBook,
  toCommand,
  toEvent,
  toFeedEntry,
  toGrant,
  toLease,
  toMessage,
  toKnownRequest,
  toRequest,
  toRule,
  toSession,
  toToken,
  type ReportUnreadable,
} from './rows.ts';
import { SqlPushes } from './pushes.ts';

const FEED_TABLES = ['sessions', 'requests', 'commands', 'removals', 'events'] as const;

/** Each table is limited by itself: neither database merges their indexes, and sorting them all would read everything. */
const sizesIn = (table: (typeof FEED_TABLES)[number]): string =>
  `SELECT * FROM (SELECT seq, ${table === 'events' ? 'size' : 'octet_length(data) AS size'}
     FROM ${table} WHERE seq > ? ORDER BY seq LIMIT ?) AS in_${table}`;

/** The sizes are read first: a row that does not fit into the page is not loaded. */
const FEED = `
  WITH sizes AS (
    SELECT seq, size FROM (${FEED_TABLES.map(sizesIn).join(' UNION ALL ')}) AS found ORDER BY seq LIMIT ?
  ), page AS (
    SELECT MAX(seq) AS last FROM (SELECT seq, size, SUM(size) OVER (ORDER BY seq) AS total FROM sizes) AS totals
     WHERE total <= ? OR total = size
  )
  SELECT * FROM (
    SELECT seq, 'session' AS kind, id AS session_id, 0 AS id, 0 AS at, '' AS type, 0 AS keep, data
      FROM sessions WHERE seq > ? AND seq <= (SELECT last FROM page)
    UNION ALL SELECT seq, 'request', session_id, 0, 0, '', 0, data
      FROM requests WHERE seq > ? AND seq <= (SELECT last FROM page)
    UNION ALL SELECT seq, 'command', session_id, 0, 0, '', 0, data
      FROM commands WHERE seq > ? AND seq <= (SELECT last FROM page)
    UNION ALL SELECT seq, 'removal', id, 0, 0, '', 0, data
      FROM removals WHERE seq > ? AND seq <= (SELECT last FROM page)
    UNION ALL SELECT seq, 'event', session_id, id, at, type, keep, data
      FROM events WHERE seq > ? AND seq <= (SELECT last FROM page)
  ) AS feed ORDER BY seq`;

const EVENTS = `
  SELECT s.event_book, e.*
    FROM sessions s
    LEFT JOIN (SELECT * FROM events WHERE session_id = ? AND id > ? ORDER BY id LIMIT ?) e ON e.session_id = s.id
   WHERE s.id = ? ORDER BY e.id`;

export class SqlReads implements StoreReads {
  readonly #sql: SqlConnection;
  readonly transcripts: SqlTranscripts;
  readonly pushes: SqlPushes;
  readonly #report: ReportUnreadable;

  constructor(sql: SqlConnection, report: ReportUnreadable) {
    this.#sql = sql;
    this.#report = report;
    this.transcripts = new SqlTranscripts(sql);
    this.pushes = new SqlPushes(sql, report);
  }

  /** The store's clock. */
  now(): Promise<number> {
    return this.#sql.now();
  }

  async session(id: string): Promise<StoredSession | undefined> {
    return this.#first('session', toSession, 'SELECT id, data FROM sessions WHERE id = ?', id);
  }

  async sessionSince(id: string, position = 0): ReturnType<StoreReads['sessionSince']> {
    const text = 'SELECT seq, CASE WHEN seq = ? THEN NULL ELSE data END AS data FROM sessions WHERE id = ?';
    const [row] = await this.#sql.query(text, [position, id]);
    if (!row) return undefined;
    return row['data'] === null
      ? 'unchanged'
      : { row: readOne(row, toSession, `session ${id}`), position: Number(row['seq']) };
  }

  async positions(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (ids.length === 0) return new Map();
    const rows = await this.#sql.query(`SELECT id, seq FROM sessions WHERE id IN (${slots(ids)})`, [...ids]);
    return new Map(rows.map((row) => [String(row['id']), Number(row['seq'])]));
  }

  async sessions({ principal, tags, hub, archived, search, after, limit }: SessionQuery): Promise<Page<StoredSession>> {
    const where = new Conditions();
    if (principal !== undefined) where.add('principal = ?', principal);
    if (tags !== undefined) where.add(tags.length === 0 ? '1 = 0' : `tag IN (${slots(tags)})`, ...tags);
    if (hub !== undefined) where.add('hub = ?', hub);
    if (archived !== undefined) where.add('archived = ?', archived ? 1 : 0);
    if (search !== undefined) where.add(this.#sql.dialect.contains('search'), search.toLowerCase());
    if (after !== undefined) {
      const { at, id } = fromCursor(after);
      where.add('(last_active_at, id) < (?, ?)', at, id);
    }
    const text = `SELECT id, last_active_at AS at, data FROM sessions ${where.text} ORDER BY last_active_at DESC, id DESC LIMIT ?`;
    return this.#page('session', toSession, limit, text, where.values);
  }

  async events(sessionId: string, { after = 0, limit }: { after?: number; limit: number }): Promise<EventPage> {
    const rows = await this.#sql.query(EVENTS, [sessionId, after, limit, sessionId]);
    const { lastId, droppedThrough } = toBook(rows[0]?.['event_book']);
    const events = this.#read(
      `event of session ${sessionId}`,
      toEvent,
      rows.filter((row) => row['id'] !== null),
    );
    return { events, lastId, droppedThrough };
  }

  async feed({ after, limit, maxBytes = MAX_FEED_BYTES }: FeedQuery): Promise<FeedPage> {
    // Read first: everything with a position up to here is visible to the next statement.
    const [counter] = await this.#sql.query(`SELECT value FROM counters WHERE name = 'seq'`);
    const newest = Number(counter?.['value'] ?? 0);
    if (after >= newest) return { entries: [], last: newest };
    const sizes = FEED_TABLES.flatMap(() => [after, limit]);
    const bytes = Math.min(maxBytes, MAX_FEED_BYTES);
    const rows = await this.#sql.query(FEED, [...sizes, limit, bytes, ...FEED_TABLES.map(() => after)]);
    const nameOf = ({ kind, session_id: id }: SqlRow): string =>
      kind === 'session' ? `session ${String(id)}` : `${String(kind)} of session ${String(id)}`;
    const { read: entries } = readEach(rows, toFeedEntry, this.#report, nameOf);
    const last = Number(rows.at(-1)?.['seq'] ?? newest);
    return { entries, last, ...(last < newest && { more: true }) };
  }

  messages(sessionId: string): ReturnType<StoreReads['messages']> {
    return this.#all(
      'message',
      toMessage,
      'SELECT id, data FROM messages WHERE session_id = ? ORDER BY position',
      sessionId,
    );
  }

  request(id: string): ReturnType<StoreReads['request']> {
    return this.#first('request', toRequest, 'SELECT id, data FROM requests WHERE id = ?', id);
  }

  async inbox({ principal, sessionId, after, limit }: InboxQuery): Promise<Page<StoredRequest>> {
    const where = new Conditions();
    where.add('r.done_at IS NULL');
    if (principal !== undefined) where.add('s.principal = ?', principal);
    if (sessionId !== undefined) where.add('r.session_id = ?', sessionId);
    if (after !== undefined) {
      const { at, id } = fromCursor(after);
      where.add('(r.created_at, r.id) > (?, ?)', at, id);
    }
    const join = principal === undefined ? '' : 'JOIN sessions s ON s.id = r.session_id';
    const text = `SELECT r.id, r.created_at AS at, r.data FROM requests r ${join} ${where.text} ORDER BY r.created_at, r.id LIMIT ?`;
    return this.#page('request', toRequest, limit, text, where.values);
  }

  async hasCommands({ hub }: HubRef): Promise<boolean> {
    const rows = await this.#sql.query(
      `SELECT 1 AS there FROM commands c LEFT JOIN sessions s ON s.id = c.session_id
        WHERE c.status = 'queued' AND c.done_at IS NULL
          AND (s.hub = ? OR (s.id IS NULL AND c.placed_on = ?)) LIMIT 1`,
      [hub, hub],
    );
    return rows.length > 0;
  }

  command(id: string): ReturnType<StoreReads['command']> {
    return this.#first('command', toCommand, 'SELECT id, data FROM commands WHERE id = ?', id);
  }

  commandByKey(principal: string, key: string): ReturnType<StoreReads['commandByKey']> {
    const text = 'SELECT id, data FROM commands WHERE principal = ? AND idempotency_key = ?';
    return this.#first('command', toCommand, text, principal, key);
  }

  async keyedBytes(principal: string): Promise<number> {
    const text =
      'SELECT SUM(octet_length(data)) AS bytes FROM commands WHERE principal = ? AND idempotency_key IS NOT NULL';
    const [row] = await this.#sql.query(text, [principal]);
    return Number(row?.['bytes'] ?? 0);
  }

  grants(sessionId: string): ReturnType<StoreReads['grants']> {
    const text = 'SELECT id, data FROM grants WHERE session_id = ? AND done_at IS NULL ORDER BY created_at, id';
    return this.#all('grant', toGrant, text, sessionId);
  }

  token(id: string): ReturnType<StoreReads['token']> {
    return this.#first('token', toToken, 'SELECT id, data FROM tokens WHERE id = ?', id);
  }

  tokenByHash(hash: string): ReturnType<StoreReads['tokenByHash']> {
    return this.#first('token', toToken, 'SELECT id, data FROM tokens WHERE hash = ?', hash);
  }

  tokens(): ReturnType<StoreReads['tokens']> {
    return this.#all('token', toToken, 'SELECT id, data FROM tokens ORDER BY id');
  }

  rules(): ReturnType<StoreReads['rules']> {
    return this.#all('rule', toRule, 'SELECT id, uses, last_used_at, data FROM rules ORDER BY id');
  }

  rule(id: string): ReturnType<StoreReads['rule']> {
    return this.#first('rule', toRule, 'SELECT id, uses, last_used_at, data FROM rules WHERE id = ?', id);
  }

  async rulesRevision(): Promise<number> {
    const [row] = await this.#sql.query(`SELECT value FROM counters WHERE name = 'rules'`);
    return Number(row?.['value'] ?? 0);
  }

  async settledRequests({ since, after, limit }: SettledQuery): Promise<Page<StoredRequest>> {
    const where = new Conditions();
    where.add('done_at >= ?', since);
    if (after !== undefined) {
      const { at, id } = fromCursor(after);
      where.add('(done_at, id) < (?, ?)', at, id);
    }
    const text = `SELECT id, done_at AS at, data FROM requests ${where.text} ORDER BY done_at DESC, id DESC LIMIT ?`;
    return this.#page('request', toKnownRequest, limit, text, where.values);
  }

  async setting(key: string): Promise<string | undefined> {
    return this.#first('setting', (row) => String(row['value']), 'SELECT value FROM settings WHERE name = ?', key);
  }

  leases(): Promise<StoredLease[]> {
    return this.#all('lease', toLease, 'SELECT hub AS id, data FROM leases ORDER BY hub');
  }

  async #first<T>(kind: string, to: (row: SqlRow) => T, text: string, ...values: SqlValue[]): Promise<T | undefined> {
    const [row] = await this.#sql.query(text, values);
    return row && readOne(row, to, `${kind} ${String(row['id'])}`);
  }

  async #all<T>(kind: string, to: (row: SqlRow) => T, text: string, ...values: SqlValue[]): Promise<T[]> {
    return this.#read(kind, to, await this.#sql.query(text, values));
  }

  /** A page ends where its rows end, whether or not they can be read. */
  async #page<T>(
    kind: string,
    to: (row: SqlRow) => T,
    limit: number,
    text: string,
    values: readonly SqlValue[],
  ): Promise<Page<T>> {
    const rows = await this.#sql.query(text, [...values, limit + 1]);
    const endOf = (row: SqlRow): PageEnd => ({ at: Number(row['at']), id: String(row['id']) });
    const { items, ...rest } = toPage(rows, limit, endOf);
    const { read, unreadable } = readEach(items, to, this.#report, (row) => `${kind} ${String(row['id'])}`);
    return { ...rest, items: read, ...(unreadable.length > 0 && { unreadable }) };
  }

  #read<T>(kind: string, to: (row: SqlRow) => T, rows: readonly SqlRow[]): T[] {
    return readEach(rows, to, this.#report, (row) => `${kind} ${String(row['id'])}`).read;
  }
}

class Conditions {
  readonly values: SqlValue[] = [];
  readonly #conditions: string[] = [];

  get text(): string {
    return this.#conditions.length === 0 ? '' : `WHERE ${this.#conditions.join(' AND ')}`;
  }

  add(condition: string, ...values: SqlValue[]): void {
    this.#conditions.push(condition);
    this.values.push(...values);
  }
}

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
