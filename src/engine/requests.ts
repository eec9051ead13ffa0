import { randomUUID } from 'node:crypto';
import type { Decision, PermissionAsk } from '../driver/permission-ask.ts';
import type { RequestKind, RequestRecord } from '../schema/events.ts';
import type { DeniedBy } from '../schema/results.ts';
import type { Clock } from './clock.ts';

export const SOURCES = ['caller', 'human', 'timeout', 'cancel', 'shutdown', 'policy'] as const;
export type Source = (typeof SOURCES)[number];

/** What whoever decides has to know besides the call itself. */
export type RequestContext = Pick<RequestRecord, 'plan' | 'said' | 'cwd' | 'edit' | 'own'>;
export type OwnRequest = NonNullable<RequestRecord['own']>;

export interface OpenRequest extends RequestRecord {
  readonly ask: PermissionAsk;
  /** Aborted when the request has its outcome, so that whoever still shows it can take it away. */
  readonly settled: AbortSignal;
}

export interface Outcome {
  decision: Decision;
  source: Source;
  /** The principal that decided, where one did. */
  by?: string;
  /** Refused by the session's `disallowedTools`. */
  disallowed?: true;
}

export interface RequestListener {
  onOpened(request: OpenRequest): void;
  onSettled(request: OpenRequest, outcome: Outcome): void;
}

interface Pending {
  request: OpenRequest;
  settled: AbortController;
  resolve: (decision: Decision) => void;
  release: () => void;
}

const KINDS: ReadonlyMap<string, RequestKind> = new Map<string, RequestKind>([
  ['ExitPlanMode', 'plan_review'],
  ['AskUserQuestion', 'user_question'],
]);

export function kindOf(toolName: string): RequestKind {
  return KINDS.get(toolName) ?? 'permission';
}

/** Who denied it; nobody did where the turn or the session ended first. */
export function denierOf({ source, disallowed }: Outcome): DeniedBy | undefined {
  if (disallowed) return 'disallowedTools';
  return source === 'cancel' || source === 'shutdown' ? undefined : source;
}

/** What Claude Code has asked and nobody has answered. Each request has exactly one outcome, whichever comes first. */
export class RequestBook {
  readonly #pending = new Map<string, Pending>();
  readonly #clock: Clock;
  readonly #listener: RequestListener;

  constructor(clock: Clock, listener: RequestListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  get all(): OpenRequest[] {
    return [...this.#pending.values()].map(({ request }) => request);
  }

  get size(): number {
    return this.#pending.size;
  }

  find(id: string): OpenRequest | undefined {
    return this.#pending.get(id)?.request;
  }

  /** Resolves with the one decision there will be. `timeoutMs` 0: it never expires. */
  open(ask: PermissionAsk, timeoutMs: number, context: RequestContext = {}): Promise<Decision> {
    const createdAt = this.#clock.wallTime();
    const settled = new AbortController();
    const request: OpenRequest = {
      id: ask.requestId,
      kind: kindOf(ask.toolName),
      ask,
      ...context,
      createdAt,
      expiresAt: timeoutMs === 0 ? undefined : createdAt + timeoutMs,
      settled: settled.signal,
    };
    return new Promise<Decision>((resolve) => {
      const withdraw = (): void => {
        this.settle(request.id, { behavior: 'deny', message: 'The request was withdrawn.', interrupt: true }, 'cancel');
      };
      const cancelTimer =
        timeoutMs === 0 ? undefined : this.#clock.after(timeoutMs, () => this.#expire(request.id, timeoutMs));
      ask.withdrawn.addEventListener('abort', withdraw, { once: true });
      const release = (): void => {
        cancelTimer?.();
        ask.withdrawn.removeEventListener('abort', withdraw);
      };
      this.#pending.set(request.id, { request, settled, resolve, release });
      this.#listener.onOpened(request);
      if (ask.withdrawn.aborted) withdraw();
    });
  }

  /** The request that was settled by this, or `undefined` if it is unknown or had its outcome already. */
  settle(
    id: string,
    decision: Decision,
    source: Source,
    more: Pick<Outcome, 'disallowed' | 'by'> = {},
  ): OpenRequest | undefined {
    const pending = this.#pending.get(id);
    if (!pending) return undefined;
    this.#pending.delete(id);
    pending.release();
    pending.resolve(decision);
    this.#listener.onSettled(pending.request, { decision, source, ...more });
    pending.settled.abort(`The request was settled (${source}).`);
    return pending.request;
  }

  settleAll(decision: Decision, source: Source): void {
    for (const id of [...this.#pending.keys()]) this.settle(id, decision, source);
  }

  #expire(id: string, timeoutMs: number): void {
    const message =
      `Nobody answered this request within ${String(Math.round(timeoutMs / 1000))} s. ` +
      'It was not refused by anybody: go on without it if you can, or say what you need and stop.';
    this.settle(id, { behavior: 'deny', message }, 'timeout');
  }
}

/** A request of the server's own, as Claude Code would make one. */
export function ownAsk(toolName: string, input: Record<string, unknown>): PermissionAsk {
  const id = randomUUID();
  const withdrawn = new AbortController().signal;
  return { requestId: id, toolName, input, toolUseId: id, onceOnly: true, withdrawn };
}

/** The request as plain data. */
export function recordOf({
  settled: _settled,
  ask: { withdrawn: _withdrawn, ...ask },
  ...request
}: OpenRequest): RequestRecord {
  return { ...defined(request), ask: defined(ask) };
}

function defined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
