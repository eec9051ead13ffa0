import type { Host } from '../../config/host.ts';
import { missingSandboxPackages, SANDBOX_REMEDY } from '../../config/sandbox-programs.ts';
import { ok, problem, skipped, type Finding } from './finding.ts';

/** Whether commands could be sandboxed here; a problem only where the operator wants them to be. */
export function checkSandbox(host: Pick<Host, 'env' | 'platform'>, isOn: boolean): Finding {
  const check = 'Sandbox';
  const missing = missingSandboxPackages(host).join(' and ');
  if (missing === '') return ok(check, isOn ? 'on' : 'off (CLAUDE_CODE_MCP_SANDBOX); it could be switched on');
  if (!isOn) return skipped(check, `off (CLAUDE_CODE_MCP_SANDBOX); it would need ${missing}`);
  return problem(check, `${missing} is not installed: sessions are refused`, SANDBOX_REMEDY);
}
