/**
 * Columns are what rows are looked up by; `data` holds the row as JSON. `seq` is the position of the last change in the
 * feed, `position` that of the first. `done_at` is NULL while a row is open.
 */
export const FIRST = `
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
