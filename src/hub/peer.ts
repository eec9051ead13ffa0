import { readdir, readFile, readlink, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import { PARENT_VARIABLE, variableOf, withAncestors } from '../config/ancestors.ts';
import { hubClaimFile } from '../config/hub-record.ts';
import { DEPTH_VARIABLE, depthFrom } from '../config/load-settings.ts';
import { GROUP_PREFIX } from '../driver/process/run-groups.ts';

/** Who is at the other end of the socket. */
export type Peer =
  | { readonly kind: 'outside' }
  /** Runs inside a session, known by its id or only by other marks. */
  | { readonly kind: 'inside'; readonly session: string | undefined }
  /** It does not hold its claim, or not as the process it says it is. */
  | { readonly kind: 'unproven' };

const RUN_GROUP = new RegExp(`/${GROUP_PREFIX}-[0-9a-f]{8}-`);

/**
 * Which process a client is, determined by the file that it holds open, and whether it runs inside a session: by its
 * own marks, those of its ancestors, or its cgroup. What a client says about itself does not count, because an agent
 * can talk to the socket as well as the command can. On systems other than Linux, its own claim is all there is.
 */
export async function peerOf(
  { pid }: { readonly pid?: number | undefined },
  { stateDir, nonce, platform }: { stateDir: string; nonce: string; platform: NodeJS.Platform },
): Promise<Peer> {
  const claim = hubClaimFile(await realpath(stateDir), nonce);
  try {
    if (platform !== 'linux') return { kind: 'outside' };
    if (pid === undefined || !(await holds(pid, claim))) return { kind: 'unproven' };
    const peer = insideOf(pid);
    if (peer.kind === 'inside') return peer;
    return (await isInRunGroup(pid)) ? { kind: 'inside', session: undefined } : peer;
  } finally {
    await rm(claim, { force: true });
  }
}

function insideOf(pid: number): Peer {
  let isMarked = false;
  for (const one of withAncestors(pid)) {
    const session = variableOf(one, PARENT_VARIABLE);
    if (session) return { kind: 'inside', session };
    isMarked ||= depthFrom({ [DEPTH_VARIABLE]: variableOf(one, DEPTH_VARIABLE) }).depth > 0;
  }
  return isMarked ? { kind: 'inside', session: undefined } : { kind: 'outside' };
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

/** A process that detached from its parent and environment is still in its session's cgroup, if there is one. */
async function isInRunGroup(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${String(pid)}/cgroup`, 'utf8').catch(() => '');
  return RUN_GROUP.test(text);
}
