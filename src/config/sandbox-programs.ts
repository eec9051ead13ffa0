import type { Host } from './host.ts';
import { findProgram } from './setting-kinds.ts';

/** The components of Claude Code's sandbox on Linux, by program and Debian package. macOS has its own. */
const LINUX_PROGRAMS = { bwrap: 'bubblewrap', socat: 'socat' } as const;

export const SANDBOX_REMEDY =
  'Install the packages bubblewrap and socat (Debian and Ubuntu: apt-get install bubblewrap socat), or turn CLAUDE_CODE_MCP_SANDBOX off.';

/** The packages that the sandbox still needs on this machine. */
export function missingSandboxPackages(host: Pick<Host, 'env' | 'platform'>): string[] {
  if (host.platform !== 'linux') return [];
  return Object.entries(LINUX_PROGRAMS)
    .filter(([program]) => findProgram(program, { homedir: '', ...host }) === undefined)
    .map(([, debianPackage]) => debianPackage);
}
