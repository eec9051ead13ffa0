import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import type { Settings } from '../config/load-settings.ts';
import { LOCAL, type Principal } from '../engine/principal.ts';
import { intersectRules } from '../engine/rule-intersection.ts';
import type { AttachRequest, UserPlace } from '../transports/attach/protocol.ts';
import { ignoredSettings } from './connection-rules.ts';
import type { Peer } from './peer.ts';

export type Admission =
  | { readonly settings: Settings; readonly warnings: readonly string[] }
  /** Completes "the hub does not accept this client: …". */
  | { readonly why: string };

const NAMES: Readonly<Record<keyof UserPlace, string>> = {
  user: 'the user',
  home: 'HOME',
  configDir: 'CLAUDE_CONFIG_DIR',
  stateDir: 'the state directory',
};

/**
 * Whether a client belongs to this hub, and under which rules: those that satisfy both it and `outer`, which are the
 * hub's own or, for a client inside a session, the session's.
 */
export function admit(request: AttachRequest, outer: Settings, place: UserPlace, isNested: boolean): Admission {
  for (const key of Object.keys(NAMES) as (keyof UserPlace)[]) {
    if (realPath(request.place[key]) !== realPath(place[key]))
      return { why: `${NAMES[key]} is ${place[key]} there and ${request.place[key]} here` };
  }
  const depth = isNested ? outer.depth + 1 : outer.depth;
  // A link created by the client must not lead out of the directories it is compared with.
  const allowedDirs = request.rules.allowedDirs?.map(realPath);
  const common = intersectRules({ ...outer, depth }, { ...request.rules, allowedDirs });
  if ('refusal' in common) return { why: common.refusal };
  return {
    settings: { ...outer, ...common.rules, toolset: request.toolset },
    warnings: ignoredSettings(outer, request.given),
  };
}

/**
 * All clients of the user share their sessions. One that runs inside a session is a separate principal: it sees only
 * what was started from there, and its form answers are not a person's.
 */
export function principalOf({ inside, rules }: AttachRequest): Principal {
  if (inside === undefined && rules.depth === 0) return LOCAL;
  const session = inside ?? randomUUID();
  return { id: `nested:${session}`, name: `inside ${session}`, kind: 'nested', role: 'caller', attended: false };
}

/** The request as coming from this process: its own claim about where it runs counts only if it is more restrictive. */
export function asPeer(request: AttachRequest, peer: Peer): AttachRequest {
  if (peer.kind !== 'inside') return request;
  const { session = request.inside } = peer;
  return { ...request, inside: session, rules: { ...request.rules, depth: Math.max(1, request.rules.depth) } };
}

/** Unchanged if it is not a path, or does not exist. */
function realPath(text: string): string {
  try {
    return realpathSync.native(text);
  } catch {
    return text;
  }
}
