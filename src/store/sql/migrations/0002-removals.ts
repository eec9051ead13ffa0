/** Sessions that were forgotten, so that whoever follows the feed hears of it. Kept for as long as other rows that are done. */
export const REMOVALS = `
  CREATE TABLE removals (id TEXT PRIMARY KEY, seq BIGINT NOT NULL, at BIGINT NOT NULL, data TEXT NOT NULL);
  CREATE INDEX removals_by_age ON removals (at);
  CREATE UNIQUE INDEX removals_by_seq ON removals (seq);
`;
