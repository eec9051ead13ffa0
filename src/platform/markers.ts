/** Environment variables that every process of a session inherits; the only proof that a process is ours. */
export const OWNER_MARKER = 'CLAUDE_CODE_MCP_OWNER';
export const RUN_MARKER = 'CLAUDE_CODE_MCP_SESSION';

/**
 * `$0` of the watchdog: tells it apart from a session's processes on macOS, where its environment cannot be read. Not
 * the product's name: whoever ends everything of that name must not end what cleans up afterwards.
 */
export const WATCHDOG_NAME = 'ccmcp-session-watchdog';

/** Ids travel through file names, a shell script and `ps` output, none of which quote. */
const PLAIN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{7,127}$/;

export function isPlainId(id: string): boolean {
  return PLAIN_ID.test(id);
}

/** Variables to merge into a session's environment. Ids must never be reused: create them with `randomUUID()`. */
export function markerEnv(ownerId: string, runId: string): Record<string, string> {
  for (const id of [ownerId, runId]) {
    if (!isPlainId(id)) throw new TypeError(`Not usable as a process marker: ${JSON.stringify(id)}`);
  }
  return { [OWNER_MARKER]: ownerId, [RUN_MARKER]: runId };
}
