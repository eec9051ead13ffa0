import { readFileSync } from 'node:fs';

/** Set by the driver: the session that a process belongs to. */
export const PARENT_VARIABLE = 'CLAUDE_CODE_MCP_PARENT';

/** More than any real chain of processes: a loop must not hang the start. */
const MAX_ANCESTORS = 100;

/** A variable in the environments of this process's ancestors, nearest first. Linux only, empty elsewhere. */
export function* variableOfAncestors(
  name: string,
  platform: NodeJS.Platform = process.platform,
): Generator<string | undefined> {
  if (platform !== 'linux') return;
  for (const pid of withAncestors(process.ppid)) yield variableOf(pid, name);
}

/** The environments of this process's ancestors, nearest first. Linux only, empty elsewhere. */
export function* environmentsOfAncestors(platform: NodeJS.Platform = process.platform): Generator<NodeJS.ProcessEnv> {
  if (platform !== 'linux') return;
  for (const pid of withAncestors(process.ppid)) yield environmentOf(pid);
}

/** A process and those above it, nearest first. Linux only. */
export function* withAncestors(pid: number): Generator<number> {
  let current: number | undefined = pid;
  for (let seen = 0; current !== undefined && seen < MAX_ANCESTORS; seen++) {
    yield current;
    current = parentOf(current);
  }
}

/** The session that this process runs in, according to its own environment or that of an ancestor. */
export function enclosingSession(env: NodeJS.ProcessEnv): string | undefined {
  const own = env[PARENT_VARIABLE];
  if (own) return own;
  for (const value of variableOfAncestors(PARENT_VARIABLE)) if (value) return value;
  return undefined;
}

function environmentOf(pid: number): NodeJS.ProcessEnv {
  const variables = readProc(pid, 'environ', 'utf8').split('\0');
  return Object.fromEntries(
    variables.flatMap((variable) => {
      const end = variable.indexOf('=');
      return end > 0 ? [[variable.slice(0, end), variable.slice(end + 1)]] : [];
    }),
  );
}

/** Undefined where it is not set, or the process has gone. Linux only. */
export function variableOf(pid: number, name: string): string | undefined {
  const start = `${name}=`;
  const variables = readProc(pid, 'environ').split('\0');
  return variables.find((variable) => variable.startsWith(start))?.slice(start.length);
}

function parentOf(pid: number): number | undefined {
  const { parent } = parseProcStat(readProc(pid, 'stat'));
  return parent > 0 ? parent : undefined;
}

/** The cgroups that a process is in; empty where that cannot be told. */
export function cgroupOf(pid: number): string {
  return readProc(pid, 'cgroup', 'utf8');
}

/** Empty for a process that is gone or belongs to another user. */
function readProc(pid: number, file: 'environ' | 'stat' | 'cgroup', encoding: 'latin1' | 'utf8' = 'latin1'): string {
  try {
    return readFileSync(`/proc/${String(pid)}/${file}`, encoding);
  } catch {
    return '';
  }
}

/** What is used from a line of `/proc/<pid>/stat` (Linux, proc_pid_stat(5)). */
export interface ProcStat {
  readonly parent: number;
  /** Clock ticks since boot. With the pid, it identifies one process. */
  readonly startTime: string | undefined;
  /** Dead, or a zombie waiting to be reaped. */
  readonly isDead: boolean;
}

export function parseProcStat(line: string): ProcStat {
  // The command name may contain spaces and parentheses: count from the last one.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, parent] = fields;
  return { parent: Number(parent), startTime: fields[19], isDead: state === 'Z' || state === 'X' };
}
