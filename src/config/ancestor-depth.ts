import { readFileSync } from 'node:fs';
import { parseProcStat } from './proc-stat.ts';
import { DEPTH_VARIABLE, depthFrom, type Settings } from './load-settings.ts';

/** More than any real chain of processes: a loop must not hang the start. */
const MAX_ANCESTORS = 100;

/**
 * The depth according to the parent processes. A project's `.mcp.json` could reset the variable for the server it names
 * and start servers endlessly; it cannot change the environment of the Claude Code that reads it. Linux only.
 */
export function withDepthOfAncestors(settings: Settings, platform: NodeJS.Platform = process.platform): Settings {
  if (platform !== 'linux') return settings;
  let { depth, maxDepth } = settings;
  for (let pid: number | undefined = process.ppid, seen = 0; pid !== undefined && seen < MAX_ANCESTORS; seen++) {
    const above = depthFrom({ [DEPTH_VARIABLE]: depthVariableOf(pid) });
    depth = Math.max(depth, above.depth);
    maxDepth = Math.min(maxDepth, above.limit);
    pid = parentOf(pid);
  }
  return { ...settings, depth, maxDepth };
}

function depthVariableOf(pid: number): string | undefined {
  const start = `${DEPTH_VARIABLE}=`;
  const variables = readProc(pid, 'environ').split('\0');
  return variables.find((variable) => variable.startsWith(start))?.slice(start.length);
}

function parentOf(pid: number): number | undefined {
  const { parent } = parseProcStat(readProc(pid, 'stat'));
  return parent > 0 ? parent : undefined;
}

/** Empty for a process that has gone or belongs to somebody else. */
function readProc(pid: number, file: 'environ' | 'stat'): string {
  try {
    return readFileSync(`/proc/${String(pid)}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
