import { STATES_AT_REST } from '../../schema/enums.ts';
import type { HubRef, StoredCommand, StoredLease, StoredSession, StoredToken } from '../../schema/store.ts';
import type { Retention, StoreNews } from '../contract.ts';
import type { EventSize } from '../event-bounds.ts';
import { finishedAt, toJson } from '../row-facts.ts';
import type { Loaded, Needs, RowWrite } from '../plan.ts';
import { inChunks, insertRows, slots, type SqlConnection, type SqlRow, type SqlValue } from './connection.ts';
import { readEach, toBook, toCommand, toGrant, toLease, toRequest, toSession, type ReportUnreadable } from './rows.ts';
import { SqlTranscripts } from './reads.ts';
import { SqlPushes } from './pushes.ts';

const SESSION_COLUMNS = [
  'id',
  'seq',
  'principal',
  'tag',
  'hub',
  'fence',
  'last_active_at',
  'holds_work',
  'archived',
  'search',
  'data',
] as const;
const EVENT_COLUMNS = ['session_id', 'id', 'seq', 'at', 'type', 'keep', 'size', 'data'] as const;
const MESSAGE_COLUMNS = ['session_id', 'id', 'position', 'data'] as const;
const REQUEST_COLUMNS = ['id', 'session_id', 'seq', 'created_at', 'done_at', 'data'] as const;
const COMMAND_COLUMNS = [
  'id',
  'session_id',
  'seq',
  'position',
  'principal',
  'idempotency_key',
  'placed_on',
  'status',
  'taken_by',
  'done_at',
  'data',
] as const;
const GRANT_COLUMNS = ['id', 'session_id', 'created_at', 'done_at', 'data'] as const;
const REMOVAL_COLUMNS = ['id', 'seq', 'at', 'data'] as const;
const TOKEN_COLUMNS = ['id', 'hash', 'dead_at', 'data'] as const;

const NEXT_COMMANDS = `
  SELECT c.id, c.data FROM commands c LEFT JOIN sessions s ON s.id = c.session_id
   WHERE c.status = 'queued'
     AND (s.hub = ? OR (s.id IS NULL AND c.placed_on = ?))
     AND NOT EXISTS (
       SELECT 1 FROM commands b
        WHERE b.session_id = c.session_id AND b.done_at IS NULL AND (b.status = 'taken' OR b.position < c.position))
   ORDER BY c.position LIMIT ?`;

/** `seq` is 0 if the row is not in the feed. */
export interface PositionedWrite {
  readonly seq: number;
  readonly write: RowWrite;
}

/** Inside one transaction of one connection. */
export class SqlTables {
  readonly #sql: SqlConnection;
  readonly transcripts: SqlTranscripts;
  readonly pushes: SqlPushes;
  #news: StoreNews | undefined;
  /** The hubs that the commands in it are meant for; undefined if unknown. */
  readonly #hubs = new Set<string | undefined>();

  readonly #report: ReportUnreadable;

  constructor(sql: SqlConnection, report: ReportUnreadable) {
    this.#sql = sql;
    this.#report = report;
    this.transcripts = new SqlTranscripts(sql);
    this.pushes = new SqlPushes(sql, report);
  }

  /** What was written so far that anybody could want to know of. */
  get news(): StoreNews | undefined {
    const [hub, ...others] = this.#hubs;
    return this.#news && hub !== undefined && others.length === 0 ? { ...this.#news, hub } : this.#news;
  }

  /** The store's clock. */
  now(): Promise<number> {
    return this.#sql.now();
  }

  async load(needs: Needs, hub: string | undefined): Promise<Loaded> {
    const { update } = this.#sql.dialect.lock;
    const byKey = `SELECT data FROM commands WHERE principal = ? AND idempotency_key = ?${update}`;
    // Always in this order and by id, so that two batches do not deadlock.
    const [lease, sessions, requests, commands, grants, ...keyed] = await Promise.all([
      hub === undefined ? undefined : this.lease(hub),
      this.#byIds(`SELECT id, hub, fence, event_book FROM sessions`, needs.sessions),
      this.#byIds('SELECT data FROM requests', needs.requests),
      this.#byIds('SELECT data FROM commands', needs.commands),
      this.#byIds('SELECT data FROM grants', needs.grants),
      ...[...needs.commandKeys.values()].map(({ principal, key }) => this.#sql.query(byKey, [principal, key])),
    ]);
    return {
      lease,
      sessions: new Map(
        sessions.map((row) => [
          String(row['id']),
          {
            isNew: false,
            runsOn: { hub: String(row['hub']), fence: Number(row['fence']) },
            book: toBook(row['event_book']),
          },
        ]),
      ),
      requests: byId(requests.map(toRequest)),
      commands: byId([...commands, ...keyed.flat()].map(toCommand)),
      grants: byId(grants.map(toGrant)),
    };
  }

  /** Of one session, by ascending id. */
  async eventSizes(sessionId: string): Promise<EventSize[]> {
    const rows = await this.#sql.query('SELECT id, keep, size FROM events WHERE session_id = ? ORDER BY id', [
      sessionId,
    ]);
    return rows.map((row) => ({ id: Number(row['id']), keep: row['keep'] === 1, size: Number(row['size']) }));
  }

  /**
   * The last of `count` new positions in the feed. Requested last: positions become visible in order because the holder
   * of one blocks the others until it has committed.
   */
  nextSeq(count: number): Promise<number> {
    return this.#count('seq', count);
  }

  nextFence(): Promise<number> {
    return this.#count('fence', 1);
  }

  async save(writes: readonly PositionedWrite[]): Promise<void> {
    const sql = this.#sql;
    for (const { write } of writes) {
      if (write.table !== 'commands') this.#wrote('others');
      else {
        this.#wrote(finishedAt(write.row) === undefined ? 'queued' : 'ended');
        this.#hubs.add(write.row.placedOn);
      }
    }
    const rowsOf = collect(writes);
    const sessionKey = { columns: ['id'] };
    await insertRows(sql, 'sessions', SESSION_COLUMNS, rowsOf.newSessions);
    await insertRows(sql, 'sessions', SESSION_COLUMNS, rowsOf.sessions, sessionKey);
    await insertRows(sql, 'events', EVENT_COLUMNS, rowsOf.events);
    for (const { write } of writes) await this.#saveOther(write);
    await insertRows(sql, 'messages', MESSAGE_COLUMNS, rowsOf.messages, {
      columns: ['session_id', 'id'],
      keep: ['position'],
    });
    await insertRows(sql, 'requests', REQUEST_COLUMNS, rowsOf.requests, { columns: ['id'] });
    await insertRows(sql, 'commands', COMMAND_COLUMNS, rowsOf.commands, { columns: ['id'], keep: ['position'] });
    await insertRows(sql, 'grants', GRANT_COLUMNS, rowsOf.grants, { columns: ['id'] });
    await insertRows(sql, 'tokens', TOKEN_COLUMNS, rowsOf.tokens, { columns: ['id'] });
    await insertRows(sql, 'removals', REMOVAL_COLUMNS, rowsOf.removals, { columns: ['id'] });
    await insertRows(sql, 'rules', ['id', 'data'], rowsOf.rules, { columns: ['id'] });
    if (writes.some(({ write }) => write.table === 'rules')) await this.#count('rules', 1);
    await insertRows(sql, 'settings', ['name', 'value'], rowsOf.settings, { columns: ['name'] });
    for (const { write } of writes) if (write.table === 'removed') await this.#removeSession(write.sessionId);
  }

  async #removeSession(id: string): Promise<void> {
    for (const table of ['events', 'messages', 'requests', 'grants', 'transcripts'])
      await this.#sql.run(`DELETE FROM ${table} WHERE session_id = ?`, [id]);
    await this.#sql.run('DELETE FROM sessions WHERE id = ?', [id]);
  }

  async #saveOther(write: RowWrite): Promise<void> {
    const { run } = this.#sql;
    if (write.table === 'books') {
      await run('UPDATE sessions SET event_book = ? WHERE id = ?', [JSON.stringify(write.book), write.sessionId]);
    } else if (write.table === 'messages' && !write.row) {
      await run('DELETE FROM messages WHERE session_id = ? AND id = ?', [write.sessionId, write.id]);
    } else if (write.table === 'rules' && !write.row) {
      await run('DELETE FROM rules WHERE id = ?', [write.id]);
    } else if (write.table === 'rule_uses') {
      const text = 'UPDATE rules SET uses = uses + ?, last_used_at = ? WHERE id = ?';
      await run(text, [write.times, write.at, write.id]);
    } else if (write.table === 'dropped') {
      for (const ids of inChunks(write.eventIds, 500)) {
        const text = `DELETE FROM events WHERE session_id = ? AND id IN (${slots(ids)})`;
        await run(text, [write.sessionId, ...ids]);
      }
    }
  }

  async setting(key: string): Promise<string | undefined> {
    const [row] = await this.#sql.query('SELECT value FROM settings WHERE name = ?', [key]);
    return row && String(row['value']);
  }

  /** `alone`: after those who write in its name have finished, and before any of them writes again. */
  async lease(hub: string, alone?: 'alone'): Promise<StoredLease | undefined> {
    const { share, update } = this.#sql.dialect.lock;
    const [row] = await this.#sql.query(`SELECT data FROM leases WHERE hub = ?${alone ? update : share}`, [hub]);
    return row && toLease(row);
  }

  async saveLease(lease: StoredLease): Promise<void> {
    this.#wrote('others');
    await insertRows(this.#sql, 'leases', ['hub', 'data'], [[lease.hub, toJson(lease)]], { columns: ['hub'] });
  }

  async sessionsToClaim(ids: readonly string[]): Promise<StoredSession[]> {
    return this.#read('session', toSession, await this.#byIds('SELECT id, data FROM sessions', new Set(ids)));
  }

  /** The oldest queued command of each session of this hub, in any of its incarnations, that has none in progress. */
  async nextCommands({ hub }: HubRef, limit: number): Promise<StoredCommand[]> {
    const text = NEXT_COMMANDS + this.#sql.dialect.lock.skipTaken('c');
    return this.#read('command', toCommand, await this.#sql.query(text, [hub, hub, limit]));
  }

  /** Their positions stay as they are: no one waits for a command to be taken. */
  async saveTaken(commands: readonly StoredCommand[]): Promise<void> {
    const text = `UPDATE commands SET status = 'taken', taken_by = ?, data = ? WHERE id = ?`;
    for (const command of commands) await this.#sql.run(text, [takerOf(command), toJson(command), command.id]);
  }

  async commandsTakenBy(hub: string): Promise<StoredCommand[]> {
    const text = `SELECT id, data FROM commands WHERE status = 'taken' AND taken_by = ?${this.#sql.dialect.lock.update}`;
    return this.#read('command', toCommand, await this.#sql.query(text, [hub]));
  }

  async commandsTakenFor(sessionIds: readonly string[]): Promise<StoredCommand[]> {
    const text = `SELECT id, data FROM commands WHERE status = 'taken' AND session_id`;
    const rows = await this.#in(text, [...new Set(sessionIds)], this.#sql.dialect.lock.update);
    return this.#read('command', toCommand, rows);
  }

  /** The removed sessions, with what they are looked up by. */
  async forget({ before, limit }: Retention): Promise<Pick<StoredSession, 'id' | 'principal'>[]> {
    const { query, dialect } = this.#sql;
    const old = await query(
      `SELECT id, principal FROM sessions
        WHERE tag IN (${slots(STATES_AT_REST)}) AND last_active_at < ? AND holds_work = 0
          AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.session_id = sessions.id AND r.done_at IS NULL)
        ORDER BY last_active_at, id LIMIT ?${dialect.lock.skipTaken('sessions')}`,
      [...STATES_AT_REST, before, limit],
    );
    const gone = old.map((row) => ({ id: String(row['id']), principal: String(row['principal']) }));
    const ids = gone.map(({ id }) => id);
    for (const table of ['events', 'messages', 'requests', 'commands', 'grants', 'transcripts']) {
      await this.#in(`DELETE FROM ${table} WHERE session_id`, ids);
    }
    await this.#in('DELETE FROM sessions WHERE id', ids);
    for (const table of ['requests', 'commands', 'grants']) {
      await query(`DELETE FROM ${table} WHERE done_at < ?`, [before]);
    }
    await query('DELETE FROM tokens WHERE dead_at < ?', [before]);
    await query('DELETE FROM removals WHERE at < ?', [before]);
    return gone;
  }

  #read<T>(kind: string, to: (row: SqlRow) => T, rows: readonly SqlRow[]): T[] {
    return readEach(rows, to, this.#report, (row) => `${kind} ${String(row['id'])}`).read;
  }

  #wrote(what: 'queued' | 'ended' | 'others'): void {
    this.#news = { queued: false, ended: false, others: false, ...this.#news, [what]: true };
  }

  async #count(name: string, by: number): Promise<number> {
    const [row] = await this.#sql.query('UPDATE counters SET value = value + ? WHERE name = ? RETURNING value', [
      by,
      name,
    ]);
    return Number(row?.['value']);
  }

  #byIds(select: string, ids: ReadonlySet<string>): Promise<SqlRow[]> {
    return this.#in(`${select} WHERE id`, [...ids].sort(), ` ORDER BY id${this.#sql.dialect.lock.update}`);
  }

  async #in(statement: string, ids: readonly string[], end = ''): Promise<SqlRow[]> {
    const chunks = [...inChunks(ids, 500)];
    const text = (some: readonly string[]): string => `${statement} IN (${slots(some)})${end}`;
    return (await Promise.all(chunks.map((some) => this.#sql.query(text(some), some)))).flat();
  }
}

/** What is written to which table, with each row's columns. */
function collect(
  writes: readonly PositionedWrite[],
): Record<
  | 'newSessions'
  | 'sessions'
  | 'events'
  | 'messages'
  | 'requests'
  | 'commands'
  | 'grants'
  | 'tokens'
  | 'removals'
  | 'rules'
  | 'settings',
  SqlValue[][]
> {
  const rows: ReturnType<typeof collect> = {
    newSessions: [],
    sessions: [],
    events: [],
    messages: [],
    requests: [],
    commands: [],
    grants: [],
    tokens: [],
    removals: [],
    rules: [],
    settings: [],
  };
  for (const { seq, write } of writes) {
    switch (write.table) {
      case 'sessions': {
        const { id, principal, state, runsOn, lastActiveAt, archivedAt } = write.row;
        rows[write.isNew ? 'newSessions' : 'sessions'].push([
          ...[id, seq, principal, state.tag, runsOn.hub, runsOn.fence, lastActiveAt],
          ...[holdsWork(write.row) ? 1 : 0, archivedAt === undefined ? 0 : 1, searchText(write.row), toJson(write.row)],
        ]);
        break;
      }
      case 'events': {
        const { sessionId, id, at, type, keep } = write.row;
        rows.events.push([sessionId, id, seq, at, type, keep ? 1 : 0, Buffer.byteLength(write.json), write.json]);
        break;
      }
      case 'messages':
        if (write.row) rows.messages.push([write.sessionId, write.id, seq, toJson(write.row)]);
        break;
      case 'requests': {
        const { id, sessionId, createdAt, outcome } = write.row;
        rows.requests.push([id, sessionId, seq, createdAt, outcome?.at ?? null, toJson(write.row)]);
        break;
      }
      case 'commands': {
        const { id, sessionId, principal, key = null, placedOn = null, progress } = write.row;
        rows.commands.push([
          ...[id, sessionId, seq, seq, principal, key, placedOn, progress.status, takerOf(write.row)],
          ...[finishedAt(write.row) ?? null, toJson(write.row)],
        ]);
        break;
      }
      case 'grants': {
        const { id, sessionId, createdAt, closed } = write.row;
        rows.grants.push([id, sessionId, createdAt, closed?.at ?? null, toJson(write.row)]);
        break;
      }
      case 'tokens':
        rows.tokens.push([write.row.id, write.row.hash, deadAt(write.row) ?? null, toJson(write.row)]);
        break;
      case 'removals':
        rows.removals.push([write.row.id, seq, write.row.at, toJson(write.row)]);
        break;
      case 'rules':
        if (write.row) rows.rules.push([write.id, toJson(write.row)]);
        break;
      case 'settings':
        rows.settings.push([write.key, write.value]);
        break;
      case 'books':
      case 'rule_uses':
      case 'dropped':
      case 'removed':
        break;
    }
  }
  return rows;
}

function searchText({ id, title = '', cwd, principal }: StoredSession): string {
  return [id, title, cwd, principal].join('\n').toLowerCase();
}

function holdsWork({ workspace }: StoredSession): boolean {
  return workspace.type !== 'directory';
}

/** When it was revoked or expires, whichever comes first. */
function deadAt({ expiresAt, revokedAt }: StoredToken): number | undefined {
  return expiresAt === undefined ? revokedAt : Math.min(expiresAt, revokedAt ?? expiresAt);
}

function takerOf({ progress }: StoredCommand): string | null {
  return progress.status === 'taken' ? progress.by.hub : null;
}

function byId<Row extends { id: string }>(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.id, row]));
}
