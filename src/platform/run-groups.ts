import { existsSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isPlainId, type System } from './system.ts';

/** Name of a run's cgroup; the owner's record says whether its server lives. */
const GROUP_PREFIX = 'claude-code-mcp';

const KILL_DEADLINE_MS = 2_000;
const POLL_MS = 10;

export function groupName(ownerId: string, runId: string): string {
  return `${GROUP_PREFIX}-${ownerId}-${runId}`;
}

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const GROUP_IN_PATH = new RegExp(`/${GROUP_PREFIX}-(${UUID})-(${UUID})(?=/|$)`, 'gm');

/** The runs of any server in whose cgroups a process is, from its /proc/<pid>/cgroup; the innermost first. */
export function runsInGroups(cgroup: string): { owner: string; run: string }[] {
  return [...cgroup.matchAll(GROUP_IN_PATH)].map(([, owner = '', run = '']) => ({ owner, run })).reverse();
}

/**
 * A cgroup for each run, on Linux if this process may create one (cgroup v2, Linux 5.14). It also contains processes
 * that detached from their parent, session, group and environment: a process cannot lose its cgroup by accident.
 * Elsewhere nothing happens.
 */
export class RunGroups {
  /** The directory that contains the groups; undefined if there are none. */
  readonly parent: string | undefined;
  readonly #ownerId: string;
  /** By run: settles once the process is in its group, with undefined if it has none. */
  readonly #groups = new Map<string, Promise<string | undefined>>();

  constructor(ownerId: string, system: System) {
    this.#ownerId = ownerId;
    this.parent = system.platform === 'linux' ? system.ownGroup() : undefined;
  }

  /**
   * Call right after the start of the process: Claude Code takes ten times longer to start anything that could escape.
   * Never rejects.
   */
  async enter(runId: string, pid: number): Promise<void> {
    if (this.parent === undefined) return;
    const entered = createGroup(join(this.parent, groupName(this.#ownerId, runId)), pid);
    this.#groups.set(runId, entered);
    await entered;
  }

  /** Kills what is left in the group of a run, and removes it. Never rejects. */
  async end(runId: string): Promise<void> {
    const group = await this.#groups.get(runId);
    this.#groups.delete(runId);
    if (group !== undefined) await endGroup(group);
  }

  async endAll(): Promise<void> {
    await Promise.all(this.#groups.values());
    await endGroups(this.parent, this.#ownerId);
  }
}

async function createGroup(group: string, pid: number): Promise<string | undefined> {
  try {
    await mkdir(group);
  } catch {
    // Read-only, or not ours.
    return undefined;
  }
  try {
    if (!existsSync(join(group, 'cgroup.kill'))) throw new Error('Linux before 5.14');
    // The kernel may take 30 ms to move a process, which would block everything else.
    await writeFile(join(group, 'cgroup.procs'), String(pid));
    return group;
  } catch {
    removeGroup(group);
    return undefined;
  }
}

/** Kills what is left in any group of the owner, and removes the groups. Never rejects. */
export async function endGroups(parent: string | undefined, ownerId: string): Promise<void> {
  if (parent === undefined || !isPlainId(ownerId)) return;
  const names = subdirectories(parent).filter((name) => name.startsWith(groupName(ownerId, '')));
  await Promise.all(names.map((name) => endGroup(join(parent, name))));
}

async function endGroup(group: string): Promise<void> {
  const deadline = performance.now() + KILL_DEADLINE_MS;
  // A group without live processes can be removed at once; only a process being killed holds it longer.
  while (!removeGroup(group) && performance.now() < deadline) {
    try {
      writeFileSync(join(group, 'cgroup.kill'), '1');
    } catch {
      // Someone else has removed it.
    }
    await pause(POLL_MS);
  }
}

/** Including groups that a server inside a session created. False while something lives in it. */
function removeGroup(group: string): boolean {
  for (const name of subdirectories(group)) removeGroup(join(group, name));
  try {
    rmdirSync(group);
  } catch {
    return !existsSync(group);
  }
  return true;
}

function subdirectories(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}
