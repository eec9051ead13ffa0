import {
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  type InputRequiredResult,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { randomBytes } from 'node:crypto';
import type { Instant } from '../../engine/clock.ts';
import type { Engine } from '../../engine/engine.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import type { Session } from '../../engine/session.ts';
import { DomainError } from '../../errors/errors.ts';
import { declaredCapabilities, showsForms } from './client-forms.ts';
import type { FormDesk, Returned } from './form-desk.ts';
import type { Form } from './form.ts';

/** What a call that ended with forms has to know when it is called again with the answers. */
export interface CallState {
  tool: string;
  sessionId: string;
  /** When the wait that the caller asked for is up: good in this process only, as is the key the state is signed with. */
  until: Instant;
  rounds: number;
  asked: string[];
}

/** Clients give up a call after about ten rounds, and do not show the forms of the last. */
const MOST_ROUNDS = 8;
/** The key dies with the process; until then no answer of a slow person is turned away. */
const STATE_TTL_SECONDS = 366 * 24 * 3600;

/** The state travels through the client: signed, so that it names no session but the one the call was about. */
export function createCallStates(): RequestStateCodec<CallState> {
  return createRequestStateCodec<CallState>({ key: randomBytes(32), ttlSeconds: STATE_TTL_SECONDS });
}

interface Round {
  session: Session;
  until: Instant;
  forms: [OpenRequest, Form][];
}

/**
 * How a call of a 2026-07-28 client asks its user: there are no requests to the client, so a waiting call ends with
 * the forms of what is open and is called again, the same arguments and the answers.
 */
export class CallForms {
  readonly #engine: Engine;
  readonly #desk: FormDesk;
  readonly #states: RequestStateCodec<CallState>;
  readonly #ctx: ServerContext;
  readonly #earlier: CallState | undefined;
  #round: Round | undefined;

  constructor(engine: Engine, desk: FormDesk, states: RequestStateCodec<CallState>, ctx: ServerContext) {
    this.#engine = engine;
    this.#desk = desk;
    this.#states = states;
    this.#ctx = ctx;
    this.#earlier = ctx.mcpReq.requestState<CallState>();
  }

  get available(): boolean {
    return showsForms(declaredCapabilities(this.#ctx));
  }

  /** The session of the earlier rounds: a start that is called again must not start another. */
  get session(): Session | undefined {
    return this.#earlier && this.#engine.session(this.#earlier.sessionId);
  }

  /** When the wait of the first round is up. */
  get until(): Instant | undefined {
    return this.#earlier?.until;
  }

  /** Gives the session what came back for the forms of the round before. */
  takeAnswers(tool: string): void {
    const { session } = this;
    if (!session || !this.#earlier) return;
    if (this.#earlier.tool !== tool)
      throw new DomainError('INVALID_ARGUMENT', `The requestState belongs to a call of ${this.#earlier.tool}.`);
    for (const id of this.#earlier.asked) {
      const request = session.findRequest(id);
      if (request) this.#desk.returned(session, request, this.#returned(id));
    }
  }

  /** Something is open that this client could show and nobody was asked about. */
  wanted(session: Session): boolean {
    return this.#askable(session).length > 0;
  }

  /** The call will end with the forms of what is open, if there are any. */
  ask(session: Session, until: Instant): void {
    if ((this.#earlier?.rounds ?? 0) >= MOST_ROUNDS) return;
    const forms = this.#askable(session).flatMap((request): Round['forms'] => {
      const form = this.#desk.show(session, request, { multiSelect: true });
      return form ? [[request, form]] : [];
    });
    if (forms.length > 0) this.#round = { session, until, forms };
  }

  /** What the call answers in place of its result, when it asked. */
  async result(tool: string): Promise<InputRequiredResult | undefined> {
    if (!this.#round) return undefined;
    const { session, until, forms } = this.#round;
    const requestState = await this.#states.mint({
      tool,
      sessionId: session.id,
      until,
      rounds: (this.#earlier?.rounds ?? 0) + 1,
      asked: forms.map(([{ id }]) => id),
    });
    if (this.#ctx.mcpReq.signal.aborted) for (const [request] of forms) this.#desk.takeBack(request);
    return inputRequired({
      requestState,
      inputRequests: Object.fromEntries(
        forms.map(([{ id }, { message, requestedSchema }]) => [id, inputRequired.elicit({ message, requestedSchema })]),
      ),
    });
  }

  #askable(session: Session): OpenRequest[] {
    if (!this.available || this.#engine.settings.approvals === 'caller') return [];
    return session.requests.filter((request) => !this.#desk.wasShown(request));
  }

  #returned(id: string): Returned {
    const response = inputResponse(this.#ctx.mcpReq.inputResponses, id);
    if (response.kind !== 'elicit') return { action: 'failed', why: 'the client sent no answer' };
    return response.action === 'accept' ? { action: 'accept', content: response.content } : { action: response.action };
  }
}
