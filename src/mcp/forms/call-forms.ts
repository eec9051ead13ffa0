import {
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  type InputRequiredResult,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { randomBytes, randomUUID } from 'node:crypto';
import type { ConnectedClient } from '../../engine/requests/approvals.ts';
import type { Instant } from '../../engine/clock.ts';
import type { EngineClient } from '../../engine/client.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { Rules } from '../../engine/rules/rules.ts';
import type { RequestRecord } from '../../schema/events.ts';
import { DomainError } from '../../errors/errors.ts';
import { declaredCapabilities, showsForms } from './client-forms.ts';
import { formFor } from './request-forms.ts';
import { formEnd, type FormReturn } from './form.ts';

/** What a call that ended with forms needs to know when it is repeated with the answers. */
export interface CallState {
  tool: string;
  sessionId: string;
  /** All of them, for a call about several; the first is also `sessionId`. */
  sessionIds?: string[];
  /** Those that were working when a call about several was first made. */
  working?: string[];
  /** When the wait that the caller requested is up, by the clock of the process that `life` names. */
  until: Instant;
  life: string;
  rounds: number;
  asked: string[];
}

/** Clients give up on a call after about ten rounds, and do not show the forms of the last. */
const MAX_ROUNDS = 8;
/** Tells this process from those before it. */
const LIFE = randomUUID();
/** No slow answer is rejected as long as the key lives. */
const STATE_TTL_SECONDS = 366 * 24 * 3600;

/** The state travels through the client: signed, so that it names no session but the one the call was about. */
export function createCallStates(key: Uint8Array = randomBytes(32)): RequestStateCodec<CallState> {
  return createRequestStateCodec<CallState>({ key, ttlSeconds: STATE_TTL_SECONDS });
}

/** Every such client can show lists of choices. */
const ABILITIES = { multiSelect: true };

/** A 2026-07-28 client: it says with each call whether it shows forms, and only its waiting calls can carry them. */
export class ModernClient implements ConnectedClient {
  readonly principal: Principal;
  readonly rules: Rules | undefined;
  showsForms = false;

  constructor(principal: Principal, rules?: Rules) {
    this.principal = principal;
    this.rules = rules;
  }

  calls(ctx: ServerContext): void {
    this.showsForms = showsForms(declaredCapabilities(ctx));
  }
}

interface Round {
  sessionIds: readonly string[];
  working: readonly string[];
  until: Instant;
  asked: { sessionId: string; request: RequestRecord }[];
}

/**
 * How a call of a 2026-07-28 client asks its user: there are no requests to the client, so a waiting call ends with the
 * forms for open requests and is repeated with the same arguments and the answers.
 */
export class CallForms {
  readonly #engine: EngineClient;
  readonly #states: RequestStateCodec<CallState>;
  readonly #ctx: ServerContext;
  readonly #earlier: CallState | undefined;
  #sessionIds: readonly string[] | undefined;
  #round: Round | undefined;

  constructor(engine: EngineClient, states: RequestStateCodec<CallState>, ctx: ServerContext) {
    this.#engine = engine;
    this.#states = states;
    this.#ctx = ctx;
    this.#earlier = ctx.mcpReq.requestState<CallState>();
  }

  /** Whether the call was made before and ended with forms. */
  get isRepeat(): boolean {
    return this.#earlier !== undefined;
  }

  /** The sessions of the earlier rounds, once their answers are in: a repeated start must not start others. */
  get sessionIds(): readonly string[] | undefined {
    return this.#sessionIds;
  }

  /** Those that were working when the call was first made. */
  get working(): readonly string[] | undefined {
    return this.#earlier?.working;
  }

  /** When the wait of the first round is up; at once if that was in another process, whose clock is unknown. */
  get until(): Instant | undefined {
    if (!this.#earlier) return undefined;
    return this.#earlier.life === LIFE ? this.#earlier.until : this.#engine.clock.instant();
  }

  /** Passes the session what came back for the forms of the previous round. */
  async takeAnswers(tool: string): Promise<void> {
    if (!this.#earlier) return;
    const { sessionId, sessionIds = [sessionId], asked } = this.#earlier;
    const readings = await Promise.all(sessionIds.map((id) => this.#engine.read(id)));
    this.#sessionIds = sessionIds;
    if (this.#earlier.tool !== tool)
      throw new DomainError('INVALID_ARGUMENT', `The requestState belongs to a call of ${this.#earlier.tool}.`);
    for (const { record, requests } of readings)
      for (const request of requests) {
        if (!asked.includes(request.id)) continue;
        const end = formEnd(formFor(record, request, ABILITIES), this.#returned(request.id));
        await this.#engine.formEnded(record.id, request.id, end);
      }
  }

  /** The call will end with the forms for open requests. False if there are none, or none that it may show. */
  ask(sessionIds: readonly string[], until: Instant, working: readonly string[]): boolean {
    if ((this.#earlier?.rounds ?? 0) >= MAX_ROUNDS) return false;
    const asked = sessionIds.flatMap((sessionId) =>
      this.#engine.beginForms(sessionId).map((request) => ({ sessionId, request })),
    );
    if (asked.length === 0) return false;
    this.#round = { sessionIds, working, until, asked };
    return true;
  }

  /** What the call returns instead of its result, if it asked. */
  async result(tool: string): Promise<InputRequiredResult | undefined> {
    if (!this.#round) return undefined;
    const { sessionIds, working, until, asked } = this.#round;
    const [sessionId = ''] = sessionIds;
    const requestState = await this.#states.mint({
      tool,
      sessionId,
      ...(sessionIds.length > 1 && { sessionIds: [...sessionIds], working: [...working] }),
      until,
      life: LIFE,
      rounds: (this.#earlier?.rounds ?? 0) + 1,
      asked: asked.map(({ request }) => request.id),
    });
    if (this.#ctx.mcpReq.signal.aborted) this.withdraw();
    const elicitations = await Promise.all(
      asked.map(async (one) => {
        const { record } = await this.#engine.read(one.sessionId);
        const { message, requestedSchema } = formFor(record, one.request, ABILITIES);
        return [one.request.id, inputRequired.elicit({ message, requestedSchema })] as const;
      }),
    );
    return inputRequired({ requestState, inputRequests: Object.fromEntries(elicitations) });
  }

  /** The call does not end with its forms: they may be shown by another. */
  withdraw(): void {
    if (!this.#round) return;
    for (const { sessionId, request } of this.#round.asked) this.#engine.withdrawForm(sessionId, request.id);
  }

  #returned(id: string): FormReturn {
    const response = inputResponse(this.#ctx.mcpReq.inputResponses, id);
    return response.kind === 'elicit' ? response : { action: 'failed', why: 'the client sent no answer' };
  }
}
