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
import type { Principal } from '../../engine/rules/principal.ts';
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
  /** When the wait that the caller requested is up, by the clock of the process that `life` names. */
  until: Instant;
  life: string;
  rounds: number;
  asked: string[];
}

/** Clients give up on a call after about ten rounds, and do not show the forms of the last. */
const MAX_ROUNDS = 8;
/** Of this process. */
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
  sessionId: string;
  until: Instant;
  requests: RequestRecord[];
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
  #sessionId: string | undefined;
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

  /** The session of the earlier rounds, once their answers are in: a repeated start must not start another. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** When the wait of the first round is up; at once if that was in another process, whose clock is unknown. */
  get until(): Instant | undefined {
    if (!this.#earlier) return undefined;
    return this.#earlier.life === LIFE ? this.#earlier.until : this.#engine.clock.instant();
  }

  /** Passes the session what came back for the forms of the previous round. */
  async takeAnswers(tool: string): Promise<void> {
    if (!this.#earlier) return;
    const { record, requests } = await this.#engine.read(this.#earlier.sessionId);
    this.#sessionId = record.id;
    if (this.#earlier.tool !== tool)
      throw new DomainError('INVALID_ARGUMENT', `The requestState belongs to a call of ${this.#earlier.tool}.`);
    for (const id of this.#earlier.asked) {
      const request = requests.find((one) => one.id === id);
      if (!request) continue;
      const end = formEnd(formFor(record, request, ABILITIES), this.#returned(id));
      await this.#engine.formEnded(record.id, id, end);
    }
  }

  /** The call will end with the forms for open requests. False if there are none, or none that it may show. */
  ask(sessionId: string, until: Instant): boolean {
    if ((this.#earlier?.rounds ?? 0) >= MAX_ROUNDS) return false;
    const requests = this.#engine.beginForms(sessionId);
    if (requests.length === 0) return false;
    this.#round = { sessionId, until, requests };
    return true;
  }

  /** What the call returns instead of its result, if it asked. */
  async result(tool: string): Promise<InputRequiredResult | undefined> {
    if (!this.#round) return undefined;
    const { sessionId, until, requests } = this.#round;
    const requestState = await this.#states.mint({
      tool,
      sessionId,
      until,
      life: LIFE,
      rounds: (this.#earlier?.rounds ?? 0) + 1,
      asked: requests.map(({ id }) => id),
    });
    if (this.#ctx.mcpReq.signal.aborted) this.withdraw();
    const { record } = await this.#engine.read(sessionId);
    const elicitations = requests.map((request) => {
      const { message, requestedSchema } = formFor(record, request, ABILITIES);
      return [request.id, inputRequired.elicit({ message, requestedSchema })] as const;
    });
    return inputRequired({ requestState, inputRequests: Object.fromEntries(elicitations) });
  }

  /** The call does not end with its forms: they may be shown by another. */
  withdraw(): void {
    if (!this.#round) return;
    const { sessionId, requests } = this.#round;
    for (const { id } of requests) this.#engine.withdrawForm(sessionId, id);
  }

  #returned(id: string): FormReturn {
    const response = inputResponse(this.#ctx.mcpReq.inputResponses, id);
    return response.kind === 'elicit' ? response : { action: 'failed', why: 'the client sent no answer' };
  }
}
