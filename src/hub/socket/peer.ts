import { readdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { cgroupOf, PARENT_VARIABLE, variableOf, withAncestors } from '../../platform/ancestors.ts';
import { hubClaimFile } from '../../config/hub-record.ts';
import { DEPTH_VARIABLE, depthFrom } from '../../config/load-settings.ts';
import { runsInGroups } from '../../platform/run-groups.ts';
import type { OwnProcesses } from '../../engine/engine-host.ts';
import type { HubRequest } from '../../transports/attach/protocol.ts';

/** Who is at the other end of the socket. */
export type Peer =
  | OutsidePeer
  | InsidePeer
  /** It does not hold its claim, or not as the process it says it is. */
  | { readonly kind: 'unproven' };

export interface OutsidePeer {
  readonly kind: 'outside';
  /** It reads from a terminal and writes to one, so a person can be asked there. */
  readonly isInteractive: boolean;
}

/** A process inside a session. */
export interface InsidePeer {
  readonly kind: 'inside';
  /** The session that it really belongs to, if that can be determined. */
  readonly session: string | undefined;
  /** The sessions that it and its ancestors name in their environment; anyone can name any session there. */
  readonly named: readonly string[];
}

interface PeerContext {
  readonly stateDir: string;
  readonly nonce: string;
  readonly platform: NodeJS.Platform;
  readonly processes: OwnProcesses;
}

/**
 * Which process a client is, determined by the file that it holds open, and whether it runs inside a session: by the
 * processes above it, their marks and its own, or its cgroup. What a client says about itself can only add to that,
 * because an agent can talk to the socket as well as the command can. On systems other than Linux, its own claim is all
 * there is.
 */
export async function peerOf(request: HubRequest, context: PeerContext): Promise<Peer> {
  const { stateDir, nonce, platform, processes } = context;
  const claim = hubClaimFile(await realpath(stateDir), nonce);
  const { inside, isNested } = claimOf(request);
  try {
    if (platform !== 'linux')
      return isNested
        ? { kind: 'inside', session: inside, named: inside === undefined ? [] : [inside] }
        : { kind: 'outside', isInteractive: claimsTerminal(request) };
    const { pid } = request;
    if (pid === undefined || !(await holds(pid, claim))) return { kind: 'unproven' };
    const { session, named, isMarked } = marksOf(pid, processes);
    if (inside !== undefined) named.add(inside);
    const isInside = isNested || isMarked || session !== undefined || named.size > 0;
    if (isInside) return { kind: 'inside', session, named: [...named] };
    return { kind: 'outside', isInteractive: claimsTerminal(request) && (await isAtTerminal(pid)) };
  } finally {
    await rm(claim, { force: true });
  }
}

/** What it says about itself. */
function claimOf(request: HubRequest): { readonly inside: string | undefined; readonly isNested: boolean } {
  if (request.kind !== 'attach' && request.kind !== 'terminal') return { inside: undefined, isNested: false };
  const { inside, rules } = request;
  return { inside, isNested: inside !== undefined || rules.depth > 0 };
}

function claimsTerminal(request: HubRequest): boolean {
  return request.kind === 'terminal' && request.isInteractive;
}

/** Major numbers of consoles, of the controlling terminal, and of pseudo-terminals. */
const TERMINALS: ReadonlySet<number> = new Set([4, 5, 136, 137, 138, 139, 140, 141, 142, 143]);

async function isAtTerminal(pid: number): Promise<boolean> {
  const isTerminal = async (fd: number): Promise<boolean> => {
    const file = await stat(`/proc/${String(pid)}/fd/${String(fd)}`).catch(() => undefined);
    return file?.isCharacterDevice() === true && TERMINALS.has((file.rdev >> 8) & 0xfff);
  };
  return (await isTerminal(0)) && (await isTerminal(1));
}

interface Marks {
  session: string | undefined;
  readonly named: Set<string>;
  isMarked: boolean;
}

function marksOf(pid: number, processes: OwnProcesses): Marks {
  const marks: Marks = { session: undefined, named: new Set(), isMarked: false };
  for (const one of withAncestors(pid)) {
    marks.session ??= processes.sessionOfProcess(one);
    const name = variableOf(one, PARENT_VARIABLE);
    if (name) marks.named.add(name);
    marks.isMarked ||= depthFrom({ [DEPTH_VARIABLE]: variableOf(one, DEPTH_VARIABLE) }).depth > 0;
  }
  // A process that detached from its parent and environment is still in its session's cgroup, if there is one.
  const cgroup = cgroupOf(pid);
  const inGroup = processes.sessionOfGroup(cgroup);
  if (inGroup !== undefined) marks.named.add(inGroup);
  marks.session ??= inGroup;
  marks.isMarked ||= runsInGroups(cgroup).length > 0;
  return marks;
}

async function holds(pid: number, file: string): Promise<boolean> {
  const directory = `/proc/${String(pid)}/fd`;
  try {
    const links = (await readdir(directory)).map((fd) => readlink(path.join(directory, fd)).catch(() => ''));
    return (await Promise.all(links)).includes(file);
  } catch {
    return false;
  }
}
