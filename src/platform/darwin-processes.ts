import { OWNER_MARKER, RUN_MARKER, WATCHDOG_NAME, type System } from './system.ts';
import type { ProcessIdentity } from './processes.ts';

interface Row {
  readonly pid: number;
  readonly parent: number;
  readonly startTime: string;
  command: string;
}

const COLUMNS = 'pid=,ppid=,stat=,lstart=,command=';
const LINE = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+([A-Z]\w\w\s+[A-Z]\w\w\s+\d+\s+[\d:]{8}\s+\d{4})\s(.*)$/;

export async function darwinStartTimes(pids: readonly number[], system: System): Promise<Map<number, string>> {
  const rows = parse(await system.run('ps', ['-p', pids.join(','), '-o', COLUMNS]));
  return new Map([...rows.values()].map(({ pid, startTime }) => [pid, startTime]));
}

/**
 * macOS hides the environment of its own protected programs (/bin/sh, /bin/zsh, /bin/sleep), even from root. So what a
 * marked process has started counts as marked too, unless it shows another marker or is a watchdog.
 */
export async function darwinMarked(
  wanted: (markers: { owner: string; run: string }) => boolean,
  system: System,
): Promise<ProcessIdentity[]> {
  // Two listings, because `ps -E` does not say where the arguments end: text in an argument proves nothing.
  const [plain, withEnvironment] = await Promise.all([
    system.run('ps', ['-A', '-ww', '-o', COLUMNS]).then(parse),
    system.run('ps', ['-A', '-E', '-ww', '-o', COLUMNS]).then(parse),
  ]);
  const children = new Map<number, Row[]>();
  const queue: ProcessIdentity[] = [];
  const closed = new Set<number>([system.pid]);
  for (const row of plain.values()) {
    const siblings = children.get(row.parent);
    if (siblings) siblings.push(row);
    else children.set(row.parent, [row]);
    const markers = readMarkers(row, withEnvironment.get(row.pid));
    if (!markers && !row.command.includes(WATCHDOG_NAME)) continue;
    if (markers && wanted(markers) && row.pid !== system.pid)
      queue.push({ pid: row.pid, startTime: row.startTime, ...markers });
    closed.add(row.pid);
  }
  const found: ProcessIdentity[] = [];
  for (let identity = queue.pop(); identity; identity = queue.pop()) {
    found.push(identity);
    for (const { pid, startTime } of children.get(identity.pid) ?? []) {
      if (closed.has(pid)) continue;
      closed.add(pid);
      queue.push({ ...identity, pid, startTime });
    }
  }
  return found.sort((a, b) => a.pid - b.pid);
}

function parse(output: string): Map<number, Row> {
  const rows = new Map<number, Row>();
  let last: Row | undefined;
  for (const line of output.split('\n')) {
    const [, pid, parent, state, startTime, command] = LINE.exec(line) ?? [];
    if (pid === undefined || parent === undefined || startTime === undefined || command === undefined) {
      if (last) last.command += `\n${line}`;
      continue;
    }
    last = { pid: Number(pid), parent: Number(parent), startTime: startTime.replace(/\s+/g, ' '), command };
    if (!state?.startsWith('Z')) rows.set(last.pid, last);
  }
  for (const row of rows.values()) row.command = row.command.trimEnd();
  return rows;
}

function readMarkers(plain: Row, full: Row | undefined): { owner: string; run: string } | undefined {
  if (full?.startTime !== plain.startTime || !full.command.startsWith(plain.command)) return undefined;
  const environment = full.command.slice(plain.command.length);
  const owner = valueOf(environment, OWNER_MARKER);
  return owner === undefined ? undefined : { owner, run: valueOf(environment, RUN_MARKER) ?? '' };
}

function valueOf(environment: string, name: string): string | undefined {
  return new RegExp(`\\s${name}=(\\S+)`).exec(environment)?.[1];
}
