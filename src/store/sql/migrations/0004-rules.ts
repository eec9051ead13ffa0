/** Standing rules. How often one was used changes far more often than the rule. */
export const RULES = `
  CREATE TABLE rules (id TEXT PRIMARY KEY, uses BIGINT NOT NULL DEFAULT 0, last_used_at BIGINT, data TEXT NOT NULL);
  INSERT INTO counters (name, value) VALUES ('rules', 0);
`;
