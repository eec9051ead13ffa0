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
