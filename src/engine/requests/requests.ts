import { randomUUID } from 'node:crypto';
import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import type { DecisionSource, DeniedBy, RequestKind } from '../../schema/enums.ts';
import type { EventBody, RequestRecord } from '../../schema/events.ts';
import { defined } from '../../schema/json.ts';
import type { DecidingRule } from '../../schema/results.ts';
import { later, msBetween, type Clock } from '../clock.ts';

export type Source = DecisionSource;

/** What a decider needs to know besides the call itself. */
export type RequestContext = Pick<
  RequestRecord,
  'plan' | 'said' | 'agent' | 'cwd' | 'scope' | 'edit' | 'target' | 'branch' | 'own'
>;
export type OwnRequest = NonNullable<RequestRecord['own']>;

export interface OpenRequest extends RequestRecord {
  readonly ask: PermissionAsk;
  /** Aborted when the request is settled, so that anyone still showing it can remove it. */
  readonly settled: AbortSignal;
}

export interface Outcome {
  decision: Decision;
  source: Source;
  /** There was no process to hear it. */
  detached?: true;
  /** The principal that decided, if one did, and its display name. */
  by?: string;
  byName?: string;
  /** Refused by the session's `disallowedTools`. */
  disallowed?: true;
  /** The same call had been allowed for the whole session. */
  always?: true;
  /** The standing rule that decided. */
  rule?: DecidingRule;
}

export interface RequestListener {
  onOpened(request: OpenRequest): void;
  onSettled(request: OpenRequest, outcome: Outcome): void;
}

interface Pending {
  request: OpenRequest;
  /**
   * Who hears the decision. `gone`: the process that asked has ended, so the decision is delivered in another way.
   * `expected`: it lives on and asks this server again, of which it has not heard yet.
   */
  asker: 'here' | 'gone' | 'expected';
  settled: AbortController;
  resolve: (decision: Decision) => void;
  /** Claude Code can no longer withdraw it. */
  keep: () => void;
  cancelTimer: () => void;
}

/** The two clocks are never read at quite the same moment. */
const CLOCK_DRIFT_MS = 1_000;

const KINDS: ReadonlyMap<string, RequestKind> = new Map<string, RequestKind>([
  ['ExitPlanMode', 'plan_review'],
  ['AskUserQuestion', 'user_question'],
]);

export function kindOf(toolName: string): RequestKind {
  return KINDS.get(toolName) ?? 'permission';
}

/** Who denied it; undefined if the turn or the session ended first. */
export function denierOf({ source, disallowed }: Outcome): DeniedBy | undefined {
  if (disallowed) return 'disallowedTools';
  return source === 'cancel' || source === 'shutdown' ? undefined : source;
}

/** Unanswered requests from Claude Code. Each has exactly one outcome, whichever comes first. */
export class RequestBook {
  readonly #pending = new Map<string, Pending>();
  /** Decisions on what a process that lives on has not asked again yet. */
  readonly #unheard = new Map<string, Decision>();
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

  /** Whether it is open, or was decided here before it was asked again. */
  has(id: string): boolean {
    return this.#pending.has(id) || this.#unheard.has(id);
  }

  /** Resolves with the final decision. `timeoutMs` 0: never expires. */
  open(ask: PermissionAsk, timeoutMs: number, context: RequestContext = {}): Promise<Decision> {
    const createdAt = this.#clock.wallTime();
    const settled = new AbortController();
    const opened = {
      id: ask.requestId,
      kind: kindOf(ask.toolName),
      ask,
      ...context,
      createdAt,
      expiresAt: timeoutMs === 0 ? undefined : createdAt + timeoutMs,
      settled: settled.signal,
    };
    const request: OpenRequest = this.#expiring(opened, timeoutMs);
    return new Promise<Decision>((resolve) => {
      const withdraw = (): void => this.#withdraw(request.id);
      ask.withdrawn.addEventListener('abort', withdraw, { once: true });
      this.#pending.set(request.id, {
        request,
        settled,
        resolve,
        asker: 'here',
        keep: () => ask.withdrawn.removeEventListener('abort', withdraw),
        cancelTimer: this.#expireIn(timeoutMs, request.id, timeoutMs),
      });
      this.#listener.onOpened(request);
      if (ask.withdrawn.aborted) withdraw();
    });
  }

  /** An unanswered request that an earlier process opened. */
  restore(record: RequestRecord): void {
    const settled = new AbortController();
    const { createdAt, expiresAt } = record;
    const timeoutMs = expiresAt === undefined ? 0 : expiresAt - createdAt;
    // No more than it ever had, in case the clock was set back while no one watched.
    const leftMs = Math.min(timeoutMs, Math.max(1, (expiresAt ?? 0) - this.#clock.wallTime()));
    const cancelTimer = this.#expireIn(leftMs, record.id, timeoutMs);
    this.#pending.set(record.id, {
      request: this.#expiring(openRequest(record, new AbortController().signal, settled.signal), leftMs),
      settled,
      resolve: () => undefined,
      asker: 'gone',
      keep: () => undefined,
      cancelTimer,
    });
  }

  /** The process that asked is still there and asks again, of another server. Undefined if nothing is known of it. */
  reattach(ask: PermissionAsk): Promise<Decision> | undefined {
    const decision = this.#unheard.get(ask.requestId);
    if (decision) {
      this.#unheard.delete(ask.requestId);
      return Promise.resolve(decision);
    }
    const pending = this.#pending.get(ask.requestId);
    if (!pending) return undefined;
    const withdraw = (): void => this.#withdraw(ask.requestId);
    ask.withdrawn.addEventListener('abort', withdraw, { once: true });
    pending.keep = () => ask.withdrawn.removeEventListener('abort', withdraw);
    pending.asker = 'here';
    return new Promise((resolve) => {
      pending.resolve = resolve;
      if (ask.withdrawn.aborted) withdraw();
    });
  }

  /** The process that asked lives on, and asks again. */
  expectAll(): void {
    for (const pending of this.#pending.values()) if (!pending.request.own) pending.asker = 'expected';
  }

  /** Claude Code no longer waits for those that it has not asked for again. */
  withdrawUnasked(asked: ReadonlySet<string>): void {
    for (const [id, { asker }] of this.#pending) if (asker === 'expected' && !asked.has(id)) this.#withdraw(id);
    for (const id of this.#unheard.keys()) if (!asked.has(id)) this.#unheard.delete(id);
  }

  #withdraw(id: string): void {
    this.settle(id, { behavior: 'deny', message: 'The request was withdrawn.', interrupt: true }, 'cancel');
  }

  /** The process that asked is gone; its requests stay open. */
  detachAll(): void {
    this.#unheard.clear();
    for (const pending of this.#pending.values()) {
      pending.keep();
      pending.asker = 'gone';
    }
  }

  /** Whether there is no process to hear a decision. */
  isDetached(id: string): boolean {
    return this.#pending.get(id)?.asker === 'gone';
  }

  /** The request that this settled, or `undefined` if it is unknown or already settled. */
  settle(
    id: string,
    decision: Decision,
    source: Source,
    more: Pick<Outcome, 'disallowed' | 'by' | 'byName' | 'always' | 'rule'> = {},
  ): OpenRequest | undefined {
    const pending = this.#pending.get(id);
    if (!pending) return undefined;
    this.#pending.delete(id);
    pending.keep();
    pending.cancelTimer();
    pending.resolve(decision);
    if (pending.asker === 'expected') this.#unheard.set(id, decision);
    this.#listener.onSettled(pending.request, {
      decision,
      source,
      ...(pending.asker === 'gone' && { detached: true }),
      ...more,
    });
    pending.settled.abort(`The request was settled (${source}).`);
    return pending.request;
  }

  settleAll(decision: Decision, source: Source): void {
    for (const id of [...this.#pending.keys()]) this.settle(id, decision, source);
  }

  /**
   * Requests expire by the monotonic clock. Once the system clock was set, or the machine has slept, that is no longer
   * at the time of day it was announced for: then the time it will be is shown.
   */
  #expiring(request: OpenRequest, leftMs: number): OpenRequest {
    const { expiresAt: announced } = request;
    if (announced === undefined) return request;
    const clock = this.#clock;
    const due = later(clock.instant(), leftMs);
    const expiresAt = (): number => {
      const actual = clock.wallTime() + msBetween(clock.instant(), due);
      return Math.abs(actual - announced) < CLOCK_DRIFT_MS ? announced : Math.round(actual);
    };
    return Object.defineProperty(request, 'expiresAt', { get: expiresAt, enumerable: true });
  }

  /** `timeoutMs` 0: never. */
  #expireIn(ms: number, id: string, timeoutMs: number): () => void {
    return timeoutMs === 0 ? () => undefined : this.#clock.after(ms, () => this.#expire(id, timeoutMs));
  }

  #expire(id: string, timeoutMs: number): void {
    const message =
      `Nobody answered this request within ${String(Math.round(timeoutMs / 1000))} s. ` +
      'It was not refused: continue without it if you can, or say what you need and stop.';
    this.settle(id, { behavior: 'deny', message }, 'timeout');
  }
}

/** What a person is asked to allow: as they see it, and as it is done. */
export interface Proposal extends Pick<OwnRequest, 'opening' | 'action'> {
  readonly input: Record<string, unknown>;
}

const OWN_TOOLS = { apply: 'Apply', discard: 'Discard', rewind: 'Rewind' } as const;

/** A request by the server itself, in the form Claude Code would use. */
export function ownAsk({ action: { action }, input }: Proposal): PermissionAsk {
  const id = randomUUID();
  const toolName = OWN_TOOLS[action];
  const withdrawn = new AbortController().signal;
  return { requestId: id, toolName, input, toolUseId: id, onceOnly: true, withdrawn };
}

/** How a request was settled, for the log. `ran`: what runs instead of what was requested. */
export function settledEvent(
  request: OpenRequest,
  { decision, source, detached, rule }: Outcome,
  ran: Record<string, unknown> | undefined,
): EventBody {
  const { id, ask } = request;
  const answers = answersOf(request, decision);
  return {
    kind: 'permission_result',
    requestId: id,
    toolName: ask.toolName,
    toolUseId: ask.toolUseId,
    decision: decision.behavior,
    source,
    ...(detached && !request.own && { detached }),
    ...(decision.behavior === 'deny' && { message: decision.message }),
    ...(ran && { input: ran }),
    ...(answers && { answers }),
    ...(rule && { by: 'rule', rule }),
  };
}

/** What a question was answered, by its text. */
export function answersOf({ kind }: RequestRecord, decision: Decision): Record<string, unknown> | undefined {
  if (kind !== 'user_question' || decision.behavior === 'deny') return undefined;
  return decision.updatedInput?.['answers'] as Record<string, unknown> | undefined;
}

/** An open request made from its record. */
export function openRequest(record: RequestRecord, withdrawn: AbortSignal, settled: AbortSignal): OpenRequest {
  return { ...record, ask: { ...record.ask, withdrawn }, settled };
}

/** The request as plain data. */
export function recordOf({
  settled: _settled,
  ask: { withdrawn: _withdrawn, ...ask },
  ...request
}: OpenRequest): RequestRecord {
  return { ...defined(request), ask: defined(ask) };
}
