import { DomainError } from '../../errors/errors.ts';
import type { SqlConnection } from './connection.ts';

/**
 * Columns are what rows are looked up by; `data` holds the row as JSON. `seq` is the position of the last change in the
 * feed, `position` that of the first. `done_at` is NULL while a row is open.
 */
const FIRST = `
  CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
  INSERT INTO counters (name, value) VALUES ('seq', 0), ('fence', 0);

  CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    principal TEXT NOT NULL,
    tag TEXT NOT NULL,
    hub TEXT NOT NULL,
    fence BIGINT NOT NULL,
    last_active_at BIGINT NOT NULL,
    holds_work BIGINT NOT NULL,
    search TEXT NOT NULL,
    data TEXT NOT NULL,
    event_book TEXT
  );
  CREATE INDEX sessions_by_activity ON sessions (last_active_at, id);
  CREATE INDEX sessions_by_principal ON sessions (principal, last_active_at, id);
  CREATE INDEX sessions_by_hub ON sessions (hub, last_active_at, id);
  CREATE UNIQUE INDEX sessions_by_seq ON sessions (seq);

  CREATE TABLE events (
    session_id TEXT NOT NULL,
    id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    type TEXT NOT NULL,
    keep BIGINT NOT NULL,
    size BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session_id, id)
  );
  CREATE UNIQUE INDEX events_by_seq ON events (seq);

  CREATE TABLE messages (
    session_id TEXT NOT NULL,
    id TEXT NOT NULL,
    position BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session_id, id)
  );

  CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    done_at BIGINT,
    data TEXT NOT NULL
  );
  CREATE INDEX requests_open ON requests (created_at, id) WHERE done_at IS NULL;
  CREATE INDEX requests_by_session ON requests (session_id);
  CREATE INDEX requests_done ON requests (done_at) WHERE done_at IS NOT NULL;
  CREATE UNIQUE INDEX requests_by_seq ON requests (seq);

  CREATE TABLE commands (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    position BIGINT NOT NULL,
    principal TEXT NOT NULL,
    idempotency_key TEXT,
    placed_on TEXT,
    status TEXT NOT NULL,
    taken_by TEXT,
    done_at BIGINT,
    data TEXT NOT NULL
  );
  CREATE UNIQUE INDEX commands_by_key ON commands (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX commands_under_way ON commands (session_id, position) WHERE done_at IS NULL;
  CREATE INDEX commands_by_session ON commands (session_id);
  CREATE INDEX commands_done ON commands (done_at) WHERE done_at IS NOT NULL;
  CREATE UNIQUE INDEX commands_by_seq ON commands (seq);

  CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    done_at BIGINT,
    data TEXT NOT NULL
  );
  CREATE INDEX grants_by_session ON grants (session_id);
  CREATE INDEX grants_done ON grants (done_at) WHERE done_at IS NOT NULL;

  CREATE TABLE tokens (id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, dead_at BIGINT, data TEXT NOT NULL);
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE leases (hub TEXT PRIMARY KEY, data TEXT NOT NULL);
`;

/** Sessions that were removed, so that followers of the feed hear about it. Kept for as long as other finished rows. */
const REMOVALS = `
  CREATE TABLE removals (id TEXT PRIMARY KEY, seq BIGINT NOT NULL, at BIGINT NOT NULL, data TEXT NOT NULL);
  CREATE INDEX removals_by_age ON removals (at);
  CREATE UNIQUE INDEX removals_by_seq ON removals (seq);
`;

/** Claude Code's transcripts. `subpath` is empty for the conversation itself, and names the file of a sub-agent. */
const TRANSCRIPTS = `
  CREATE TABLE transcripts (
    session_id TEXT NOT NULL,
    subpath TEXT NOT NULL,
    position BIGINT NOT NULL,
    uuid TEXT,
    data TEXT NOT NULL,
    PRIMARY KEY (session_id, subpath, position)
  );
  CREATE UNIQUE INDEX transcripts_by_uuid ON transcripts (session_id, subpath, uuid) WHERE uuid IS NOT NULL;
`;

/** Standing rules. How often one was used changes far more often than the rule. */
const RULES = `
  CREATE TABLE rules (id TEXT PRIMARY KEY, uses BIGINT NOT NULL DEFAULT 0, last_used_at BIGINT, data TEXT NOT NULL);
  INSERT INTO counters (name, value) VALUES ('rules', 0);
`;

/**
 * Browsers that want to be notified, and what each of them has been told of which request. A push is sent from the later
 * of `not_before` and `remind_at` on, or from `not_before` on once its request is settled.
 */
const PUSHES = `
  CREATE TABLE push_subscriptions (
    id TEXT PRIMARY KEY,
    credential TEXT NOT NULL,
    principal TEXT NOT NULL,
    reads_all BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL
  );
  CREATE TABLE pushes (
    subscription_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    sent BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    failing_since BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    remind_at BIGINT NOT NULL,
    PRIMARY KEY (subscription_id, request_id)
  );
`;

/** Sessions that were put away are left out of lists. */
const ARCHIVE = `
  ALTER TABLE sessions ADD COLUMN archived BIGINT NOT NULL DEFAULT 0;
`;

/** In order, the first is version 1. Never changed once released: mistakes are fixed by the next one. */
export const MIGRATIONS: readonly string[] = [FIRST, REMOVALS, TRANSCRIPTS, RULES, PUSHES, ARCHIVE];

/**
 * Migrates the tables to this program's version, inside the caller's transaction, which keeps others from doing the
 * same at once. A store of a newer version is left alone.
 */
export async function migrate(
  { query }: Pick<SqlConnection, 'query'>,
  run: (script: string) => Promise<void>,
  migrations: readonly string[] = MIGRATIONS,
): Promise<void> {
  await run('CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)');
  const [stored] = await query('SELECT MAX(version) AS version FROM store_version');
  const version = Number(stored?.['version'] ?? 0);
  if (version > migrations.length) {
    throw new DomainError(
      'UNAVAILABLE',
      `The store has version ${version}, this program knows versions up to ${migrations.length}. ` +
        'It was left untouched: start a newer claude-code-mcp, or use another store.',
    );
  }
  if (version === migrations.length) return;
  for (const migration of migrations.slice(version)) await run(migration);
  await query('DELETE FROM store_version');
  await query('INSERT INTO store_version (version) VALUES (?)', [migrations.length]);
}
