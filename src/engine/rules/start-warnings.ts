import { claudeConfigDir, type Host } from '../../config/host.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { ignoredRulesWarning, globalClaudeFile } from '../../transcripts/project-trust.ts';

/** What a caller should know before it relies on a session started with these options. */
export async function startWarnings(
  { cwd, settingSources, permissionMode, projectConfigRoot }: SessionOptions,
  host: Host,
): Promise<string[]> {
  // A session that never asks needs no rules.
  if (permissionMode === 'bypassPermissions') return [];
  const query = { cwd: projectConfigRoot ?? cwd ?? host.cwd, settingSources };
  const places = { configDir: claudeConfigDir(host), globalFile: globalClaudeFile(host) };
  const ignored = await ignoredRulesWarning(query, places);
  return ignored === undefined ? [] : [ignored];
}
