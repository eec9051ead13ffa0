/** Sessions that were removed, so that followers of the feed hear about it. Kept for as long as other finished rows. */
export const REMOVALS = `
  CREATE TABLE removals (id TEXT PRIMARY KEY, seq BIGINT NOT NULL, at BIGINT NOT NULL, data TEXT NOT NULL);
  CREATE INDEX removals_by_age ON removals (at);
  CREATE UNIQUE INDEX removals_by_seq ON removals (seq);
`;
