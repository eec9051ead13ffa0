/** A stand-in for Claude Code, for tests that do not need the real one: it starts in a fraction of the time. */

import { fileURLToPath } from 'node:url';

export const FAKE_CLAUDE = fileURLToPath(new URL('../harness/fixtures/fake-claude.mjs', import.meta.url));

interface StandIn {
  readonly pathToClaudeCodeExecutable: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The environment of a server whose sessions all run a stand-in with this behaviour. */
export function standInEnv(behaviour: string): Record<string, string> {
  return { CLAUDE_CODE_MCP_EXECUTABLE: FAKE_CLAUDE, FAKE_CLAUDE: behaviour };
}

/** Options of a session that runs a stand-in with this behaviour. */
export function standIn(behaviour: string): { readonly advanced: StandIn } {
  return { advanced: { pathToClaudeCodeExecutable: FAKE_CLAUDE, env: { FAKE_CLAUDE: behaviour } } };
}
