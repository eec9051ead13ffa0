import type { StoredPush, StoredSubscription } from '../../schema/store.ts';
import { NEVER, type DuePush, type DuePushes, type PushQuery } from '../contract.ts';
import { toJson } from '../row-facts.ts';
import { insertRows, slots, type SqlConnection, type SqlRow } from './connection.ts';
import { readEach, toRequest, toSubscription, type ReportUnreadable } from './rows.ts';

const SUBSCRIPTION_COLUMNS = ['id', 'credential', 'principal', 'reads_all', 'created_at', 'data'] as const;

/** No burst of requests makes one transaction long. */
const MAX_QUEUED_AT_ONCE = 500;

const IS_VALID = `EXISTS (
  SELECT 1 FROM tokens t WHERE t.id = push_subscriptions.credential AND (t.dead_at IS NULL OR t.dead_at > ?))`;

/** For every subscription whose principal may see the request; `which` are conditions on either. */
const queue = (which: string): string => `
  INSERT INTO pushes (subscription_id, request_id, sent, attempts, failing_since, not_before, remind_at)
  SELECT s.id, r.id, 0, 0, 0, 0, CAST(? AS BIGINT)
    FROM requests r
    JOIN sessions x ON x.id = r.session_id
    JOIN push_subscriptions s ON s.reads_all = 1 OR s.principal = x.principal
   WHERE r.done_at IS NULL ${which}
     AND NOT EXISTS (SELECT 1 FROM pushes p WHERE p.subscription_id = s.id AND p.request_id = r.id)
   ORDER BY r.created_at LIMIT ?
  ON CONFLICT (subscription_id, request_id) DO NOTHING`;

const IS_SETTLED = '(r.id IS NULL OR r.done_at IS NOT NULL)';

const due = (except: readonly string[]): string => `
  SELECT p.*, s.data AS subscription, r.data AS request
    FROM pushes p
    JOIN push_subscriptions s ON s.id = p.subscription_id
    LEFT JOIN requests r ON r.id = p.request_id
   WHERE p.not_before <= ? AND (p.remind_at <= ? OR ${IS_SETTLED})
     ${except.length === 0 ? '' : `AND p.subscription_id NOT IN (${slots(except)})`}
   ORDER BY p.not_before, r.created_at, p.request_id LIMIT ?`;

const NEXT = `
  SELECT MIN(CASE WHEN ${IS_SETTLED} OR p.not_before > p.remind_at THEN p.not_before ELSE p.remind_at END) AS at
    FROM pushes p LEFT JOIN requests r ON r.id = p.request_id`;

/** It counts as failed until somebody says how it went. */
const TAKEN = `
  UPDATE pushes SET not_before = ?, attempts = attempts + 1,
    failing_since = CASE WHEN attempts = 0 THEN ? ELSE failing_since END`;

const OF_PUSH = 'subscription_id = ? AND request_id = ?';

export class SqlPushes {
  readonly #sql: SqlConnection;
  readonly #report: ReportUnreadable;

  constructor(sql: SqlConnection, report: ReportUnreadable) {
    this.#sql = sql;
    this.#report = report;
  }

  async subscriptions(): Promise<StoredSubscription[]> {
    const text = `SELECT id, data FROM push_subscriptions WHERE ${IS_VALID} ORDER BY created_at, id`;
    const rows = await this.#sql.query(text, [await this.#sql.now()]);
    return readEach(rows, toSubscription, this.#report, nameOf).read;
  }

  async put(
    subscription: StoredSubscription,
    { most, remindAfterMs = NEVER }: { most: number; remindAfterMs: number | undefined },
  ): Promise<void> {
    const { id, credential, principal, readsAll, createdAt } = subscription;
    const row = [id, credential, principal, readsAll ? 1 : 0, createdAt, toJson(subscription)];
    await insertRows(this.#sql, 'push_subscriptions', SUBSCRIPTION_COLUMNS, [row], { columns: ['id'] });
    const values = [(await this.#sql.now()) + remindAfterMs, id, MAX_QUEUED_AT_ONCE];
    await this.#sql.query(queue('AND s.id = ?'), values);
    const text = 'SELECT id FROM push_subscriptions WHERE principal = ? ORDER BY created_at DESC, id';
    const own = await this.#sql.query(text, [principal]);
    for (const { id: oldest } of own.slice(most)) await this.remove(String(oldest));
  }

  async remove(id: string): Promise<void> {
    await this.#sql.run('DELETE FROM pushes WHERE subscription_id = ?', [id]);
    await this.#sql.run('DELETE FROM push_subscriptions WHERE id = ?', [id]);
  }

  async take({ limit, except = [], holdMs }: PushQuery): Promise<DuePushes> {
    const { query, run, dialect } = this.#sql;
    const now = await this.#sql.now();
    const ended = await query(`SELECT id FROM push_subscriptions WHERE NOT ${IS_VALID}`, [now]);
    for (const { id } of ended) await this.remove(String(id));
    await query(queue(''), [0, MAX_QUEUED_AT_ONCE]);
    const rows = await query(due(except) + dialect.lock.skipTaken('p'), [now, now, ...except, limit]);
    for (const row of rows) {
      const of = [String(row['subscription_id']), String(row['request_id'])];
      await run(`${TAKEN} WHERE ${OF_PUSH}`, [now + holdMs, now, ...of]);
    }
    const [next] = await query(NEXT);
    const at = Number(next?.['at'] ?? NEVER);
    const pushes = readEach(rows, toDuePush, this.#report, nameOf).read;
    return { pushes, now, ...(at < NEVER && { nextInMs: Math.max(0, at - now) }) };
  }

  async save({ subscriptionId, requestId, ...push }: StoredPush): Promise<void> {
    const { sent, attempts, failingSince, notBefore, remindAt } = push;
    await this.#sql.run(
      `UPDATE pushes SET sent = ?, attempts = ?, failing_since = ?, not_before = ?, remind_at = ? WHERE ${OF_PUSH}`,
      [sent, attempts, failingSince, notBefore, remindAt, subscriptionId, requestId],
    );
  }

  async removePush({ subscriptionId, requestId }: Pick<StoredPush, 'subscriptionId' | 'requestId'>): Promise<void> {
    await this.#sql.run(`DELETE FROM pushes WHERE ${OF_PUSH}`, [subscriptionId, requestId]);
  }
}

function nameOf({ id, subscription_id: of = id }: SqlRow): string {
  return `push subscription ${String(of)}`;
}

function toDuePush(row: SqlRow): DuePush {
  const request = row['request'];
  return {
    push: {
      subscriptionId: String(row['subscription_id']),
      requestId: String(row['request_id']),
      sent: Number(row['sent']),
      attempts: Number(row['attempts']),
      failingSince: Number(row['failing_since']),
      notBefore: Number(row['not_before']),
      remindAt: Number(row['remind_at']),
    },
    subscription: toSubscription({ data: row['subscription'] }),
    request: request == null ? undefined : toRequest({ data: request }),
  };
}
