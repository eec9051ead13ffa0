import { createHash, randomUUID } from 'node:crypto';
import type { Decision, PermissionAsk, PermissionUpdate } from '../../driver/permission-ask.ts';
import type { StoredGrant } from '../../schema/store.ts';

/** A call that was allowed while there was no process to hear it: it may be made once. */
export type Grant = Omit<StoredGrant, 'closed'>;
export type GrantEnd = NonNullable<StoredGrant['closed']>;

/** How long a grant waits for its call. */
export const GRANT_LIFETIME_MS = 600_000;

/** Exactly what was requested. */
export interface AskedCall {
  readonly toolName: string;
  readonly input: Record<string, unknown>;
  readonly cwd: string;
  /** What the call would have acted on when permission was requested. See `callTarget`. */
  readonly target?: string | undefined;
}

export interface GrantListener {
  added(grant: Grant): void;
  closed(grant: Grant, end: GrantEnd): void;
}

/** The grants of one session. Each is valid for one call and eventually expires. */
export class Grants {
  readonly #open: Grant[] = [];
  readonly #sessionId: string;
  readonly #now: () => number;
  readonly #listener: GrantListener;

  /** `now`: time of day, since a grant outlives the process. */
  constructor(sessionId: string, now: () => number, listener: GrantListener, restored: readonly Grant[] = []) {
    this.#sessionId = sessionId;
    this.#now = now;
    this.#listener = listener;
    this.#open.push(...restored);
  }

  get open(): readonly Grant[] {
    return this.#open;
  }

  /** What was allowed, as a grant for the same call. */
  add(
    requestId: string,
    call: AskedCall,
    decision: Extract<Decision, { behavior: 'allow' }>,
    source?: Grant['source'],
  ): Grant {
    const createdAt = Math.trunc(this.#now());
    const grant: Grant = {
      id: randomUUID(),
      sessionId: this.#sessionId,
      requestId,
      tool: call.toolName,
      input: digestOf(call.input),
      cwd: call.cwd,
      ...(call.target !== undefined && { target: call.target }),
      ...(decision.updatedInput && { updatedInput: decision.updatedInput }),
      ...(decision.updatedPermissions && { updatedPermissions: decision.updatedPermissions }),
      ...(source && { source }),
      createdAt,
      expiresAt: createdAt + GRANT_LIFETIME_MS,
    };
    this.#open.push(grant);
    this.#listener.added(grant);
    return grant;
  }

  /**
   * Uses up a grant for exactly this call, oldest first, and returns the decision. One that is no longer valid lapses.
   */
  use(
    { toolUseId }: Pick<PermissionAsk, 'toolUseId'>,
    call: AskedCall,
    holds: (grant: Grant) => boolean = () => true,
  ): Decision | undefined {
    this.lapseExpired();
    this.#lapse((grant) => !holds(grant));
    const input = digestOf(call.input);
    const index = this.#open.findIndex(
      (grant) =>
        grant.tool === call.toolName &&
        grant.input === input &&
        grant.cwd === call.cwd &&
        (grant.target === undefined || grant.target === call.target),
    );
    const [grant] = index < 0 ? [] : this.#open.splice(index, 1);
    if (!grant) return undefined;
    this.#listener.closed(grant, { how: 'used', at: Math.trunc(this.#now()), toolUseId });
    return {
      behavior: 'allow',
      ...(grant.updatedInput && { updatedInput: grant.updatedInput }),
      ...(grant.updatedPermissions && { updatedPermissions: grant.updatedPermissions as PermissionUpdate[] }),
    };
  }

  /** Expired ones. */
  lapseExpired(): Grant[] {
    const now = this.#now();
    return this.#lapse((grant) => grant.expiresAt <= now);
  }

  /** The session is at rest: calls that were allowed but not repeated may not be made later. */
  lapseAll(): Grant[] {
    return this.#lapse(() => true);
  }

  #lapse(isOver: (grant: Grant) => boolean): Grant[] {
    const over = this.#open.filter(isOver);
    for (const grant of over) {
      this.#open.splice(this.#open.indexOf(grant), 1);
      this.#listener.closed(grant, { how: 'lapsed', at: Math.trunc(this.#now()) });
    }
    return over;
  }
}

/** The same for inputs that differ only in key order. */
export function digestOf(input: unknown): string {
  return createHash('sha256').update(canonicalJson(input)).digest('hex');
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`).join(',')}}`;
}
