/** Sessions that were put away are left out of lists. */
export const ARCHIVE = `
  ALTER TABLE sessions ADD COLUMN archived BIGINT NOT NULL DEFAULT 0;
`;
