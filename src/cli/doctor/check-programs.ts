/** Programs that Claude Code runs, besides itself. */

import { findGitBash, missingSandboxPackages, SANDBOX_REMEDY } from '../../config/needed-programs.ts';
import type { Host } from '../../config/host.ts';
import { ok, problem, skipped, type Finding } from './finding.ts';

/** On Windows Claude Code runs commands in Git Bash. Elsewhere there is nothing to check. */
export function checkGitBash(...asked: Parameters<typeof findGitBash>): Finding | undefined {
  const check = 'Git Bash';
  const bash = findGitBash(...asked);
  switch (bash.kind) {
    case 'not needed':
      return undefined;
    case 'found':
      return ok(check, bash.file);
    case 'missing':
      return problem(check, bash.problem, bash.remedy);
  }
}

/** Whether commands could be sandboxed here; a problem only where the operator wants them to be. */
export function checkSandbox(host: Pick<Host, 'env' | 'platform'>, isOn: boolean): Finding {
  const check = 'Sandbox';
  const missing = missingSandboxPackages(host).join(' and ');
  if (missing === '') return ok(check, isOn ? 'on' : 'off (CLAUDE_CODE_MCP_SANDBOX); it could be turned on');
  if (!isOn) return skipped(check, `off (CLAUDE_CODE_MCP_SANDBOX); it requires ${missing}`);
  return problem(check, `${missing} is not installed: sessions are refused`, SANDBOX_REMEDY);
}
