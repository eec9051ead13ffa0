/**
 * Browsers that want to be notified, and what each of them has been told of which request. A push is sent from the later
 * of `not_before` and `remind_at` on, or from `not_before` on once its request is settled.
 */
export const PUSHES = `
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
