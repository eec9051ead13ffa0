import { OWNER_MARKER, RUN_MARKER } from './markers.ts';
import { linuxStartTime, type ProcessIdentity } from './process-identity.ts';
import type { System } from './system.ts';

/** Few enough open files, enough to keep libuv's threads busy. */
const READERS = 16;
const OWNER_BYTES = Buffer.from(`${OWNER_MARKER}=`);

/** Every process that carries a marker, of any owner. */
export async function linuxMarked(system: System): Promise<ProcessIdentity[]> {
  const queue = (await system.pids()).filter((pid) => pid !== system.pid);
  const found: ProcessIdentity[] = [];
  async function reader(): Promise<void> {
    for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
      const identity = await identify(pid, system);
      if (identity) found.push(identity);
    }
  }
  await Promise.all(Array.from({ length: READERS }, reader));
  return found.sort((a, b) => a.pid - b.pid);
}

async function identify(pid: number, system: System): Promise<ProcessIdentity | undefined> {
  if (!readMarkers(await system.environ(pid))) return undefined;
  const startTime = linuxStartTime(pid, system);
  if (startTime === undefined) return undefined;
  // Read again: the pid may have been reused between the first read and the start time.
  const markers = readMarkers(await system.environ(pid));
  return markers && linuxStartTime(pid, system) === startTime ? { pid, startTime, ...markers } : undefined;
}

function readMarkers(block: Buffer | undefined): { owner: string; run: string } | undefined {
  if (!block?.includes(OWNER_BYTES)) return undefined;
  const variables = block.toString('latin1').split('\0');
  const owner = valueOf(variables, OWNER_MARKER);
  return owner === undefined ? undefined : { owner, run: valueOf(variables, RUN_MARKER) ?? '' };
}

function valueOf(variables: readonly string[], name: string): string | undefined {
  return variables.find((variable) => variable.startsWith(`${name}=`))?.slice(name.length + 1);
}
