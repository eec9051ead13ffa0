import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import type { Settings } from '../../config/load-settings.ts';
import { LOCAL, nestedIn, type Principal } from '../../engine/rules/principal.ts';
import { intersectRules, strictest } from '../../engine/rules/rule-intersection.ts';
import type { AttachRequest, UserPlace } from '../../transports/attach/protocol.ts';
import { ignoredSettings } from './connection-rules.ts';
import type { InsidePeer } from './peer.ts';

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
 * hub's own or, for a client inside a session, also those of the sessions it runs in.
 */
export function admit(request: AttachRequest, outer: Settings, place: UserPlace): Admission {
  for (const key of Object.keys(NAMES) as (keyof UserPlace)[]) {
    if (realPath(request.place[key]) !== realPath(place[key]))
      return { why: `${NAMES[key]} is ${place[key]} there and ${request.place[key]} here` };
  }
  // A link created by the client must not lead out of the directories it is compared with.
  const allowedDirs = request.rules.allowedDirs?.map(realPath);
  const common = intersectRules(outer, { ...request.rules, allowedDirs });
  if ('refusal' in common) return { why: common.refusal };
  return {
    settings: { ...outer, ...common.rules, toolset: request.toolset },
    warnings: ignoredSettings(outer, request.given),
  };
}

/**
 * The rules for a client inside these sessions, which are those of all of them together: naming a session that it does
 * not run in can only narrow them. The depth is counted from what the hub knows of the sessions.
 */
export function withinSessions(hub: Settings, sessions: readonly Settings[]): Settings {
  const outer = sessions.reduce((rules, session) => ({ ...rules, ...strictest(rules, session) }), hub);
  return sessions.length === 0 ? hub : { ...outer, depth: outer.depth + 1 };
}

/**
 * All clients of the user share their sessions. One that runs inside a session is a separate principal: it sees only
 * what was started from there, and its form answers are not a person's. If no process shows which session that is, it
 * sees only what it starts itself.
 */
export function principalOf(peer: { readonly kind: 'outside' } | InsidePeer): Principal {
  return peer.kind === 'outside' ? LOCAL : nestedIn(peer.session ?? randomUUID());
}

/** Unchanged if it is not a path, or does not exist. */
function realPath(text: string): string {
  try {
    return realpathSync.native(text);
  } catch {
    return text;
  }
}
