import { readFileSync } from 'node:fs';
import { parseProcStat } from './proc-stat.ts';
import { DEPTH_VARIABLE, depthFrom, type Settings } from './load-settings.ts';

/** More than any real chain; a loop in what is read must not hang the start. */
const MOST_ANCESTORS = 100;

/**
 * The depth as the processes above tell it. A project's `.mcp.json` may set the variable anew for the server it names,
 * and start servers without end; the environment of the Claude Code that reads it is out of its reach. Linux only.
 */
export function withDepthOfAncestors(settings: Settings, platform: NodeJS.Platform = process.platform): Settings {
  if (platform !== 'linux') return settings;
  let { depth, maxDepth } = settings;
  for (let pid: number | undefined = process.ppid, seen = 0; pid !== undefined && seen < MOST_ANCESTORS; seen++) {
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
