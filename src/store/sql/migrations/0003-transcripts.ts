/** Claude Code's transcripts. `subpath` is empty for the conversation itself, and names the file of a sub-agent. */
export const TRANSCRIPTS = `
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
