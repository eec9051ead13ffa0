import type { Settings } from '../../config/load-settings.ts';
import type { Decision } from '../../driver/permission-ask.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Answer } from '../../schema/commands.ts';
import type { RequestRecord } from '../../schema/events.ts';
import type { Clock } from '../clock.ts';
import { Gate } from '../gate.ts';
import type { Principal } from '../rules/access.ts';
import type { NoticeStream, SessionNotice } from '../notices.ts';
import { recordOf, type OpenRequest, type Source } from './requests.ts';
import type { Rules } from '../rules/rules.ts';

type Decider = 'caller' | 'person';

const DECIDERS: Readonly<Record<Settings['approvals'], ReadonlySet<Decider>>> = {
  auto: new Set(['caller', 'person']),
  caller: new Set(['caller']),
  human: new Set(['person']),
};

/** Whether callers may answer requests, and so may grant permissions in advance. */
export function callersDecide(mode: Settings['approvals']): boolean {
  return DECIDERS[mode].has('caller');
}

/** The mode that allows only those who may decide in both; undefined if no one may. */
export function commonDeciders(a: Settings['approvals'], b: Settings['approvals']): Settings['approvals'] | undefined {
  const common = [...DECIDERS[a]].filter((decider) => DECIDERS[b].has(decider));
  const modes = Object.keys(DECIDERS) as Settings['approvals'][];
  return modes.find((mode) => DECIDERS[mode].size === common.length && common.every((one) => DECIDERS[mode].has(one)));
}

/** A form unanswered for this long no longer blocks anyone; a late answer still counts. */
export const FORM_LIFETIME_MS = 600_000;

/** What is needed from a session to ask about its requests and settle them. */
export interface AskingSession {
  readonly id: string;
  readonly options: SessionOptions;
  readonly owner: Principal;
  /** The connection it was started on; it may be gone. */
  readonly client: ConnectedClient | undefined;
  readonly approvals: Settings['approvals'];
  readonly notices: NoticeStream<SessionNotice>;
  findRequest(id: string): OpenRequest | undefined;
  /** Rejects if the answer allows a request that has to be looked at again first. */
  checkFresh(requestId: string, answer: Answer): Promise<void>;
  respond(requestId: string, answer: Answer, source: Source, by?: Principal): void;
  decide(requestId: string, decision: Decision, source: Source): void;
}

/** Which session asks; a person may have several. */
export type Asker = Pick<AskingSession, 'id' | 'options'>;

/** A client connection, and how the person at it is asked. */
export interface ConnectedClient {
  readonly principal: Principal;
  /** Its own rules, if any; they can only narrow the server's. */
  readonly rules?: Rules | undefined;
  /** Whether it can show forms at all, even if only while one of its calls waits. */
  readonly showsForms: boolean;
  /** Shows the form for a request, until it is settled. Missing if only a waiting call can show one. Must not reject. */
  showForm?(asker: Asker, request: RequestRecord, settled: AbortSignal): Promise<FormEnd>;
}

/** What became of a form. */
export type FormEnd =
  | { kind: 'answered'; answer: Answer }
  /** Closed by the person, or answered with something unusable: there is no point in asking again. */
  | { kind: 'closed'; why: string }
  /** No person was involved; another client may still ask. */
  | { kind: 'lost'; why: string };

type FormState =
  | { kind: 'shown'; client: ConnectedClient; session: AskingSession; cancelExpiry: () => void }
  | { kind: 'expired'; client: ConnectedClient; session: AskingSession }
  | { kind: 'closed' }
  | { kind: 'lost' };

interface Asked {
  state: FormState;
  /** A person is never asked twice on one connection. */
  readonly clients: Set<ConnectedClient>;
}

/**
 * Who decides on a request: who may under the operator's mode, which person is being asked on which client, and what
 * that means for a waiting call. The first answer wins, which the request itself ensures.
 */
export class Approvals {
  readonly #clock: Clock;
  readonly #unanswerable: 'refused' | 'kept';
  readonly #gate: Gate;
  readonly #clients = new Set<ConnectedClient>();
  readonly #asked = new Map<OpenRequest, Asked>();

  /**
   * A request that only a person may decide is refused if no one can be asked here; if there is an inbox, it is kept.
   */
  constructor(clock: Clock, unanswerable: 'refused' | 'kept' = 'refused', gate = new Gate()) {
    this.#clock = clock;
    this.#unanswerable = unanswerable;
    this.#gate = gate;
  }

  // ── who may decide ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether a caller may answer the session's requests: under its own rules and, where given, under the client's. */
  callerDecides(session: Pick<AskingSession, 'approvals'>, client?: ConnectedClient): boolean {
    return callersDecide(session.approvals) && (!client?.rules || callersDecide(client.rules.settings.approvals));
  }

  checkCallerMayAnswer(session: Pick<AskingSession, 'approvals'>, client?: ConnectedClient): void {
    if (this.callerDecides(session, client)) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      'Only a person may answer requests here (CLAUDE_CODE_MCP_APPROVALS=human): wait until one has.',
    );
  }

  /** Whether the person at this client may decide, for example in a form shown there. */
  checkPersonMayAnswer(client: ConnectedClient, session: AskingSession): void {
    if (client.principal.id === session.owner.id && this.#personDecides(session, client)) return;
    throw new DomainError('PERMISSION_DENIED', 'A form answer on this connection does not count as a decision.');
  }

  // ── who can be asked ───────────────────────────────────────────────────────────────────────────────────────────

  /** Idempotent. Returns whether it is new here. */
  connect(client: ConnectedClient): boolean {
    const isNew = !this.#clients.has(client);
    this.#clients.add(client);
    return isNew;
  }

  /** The forms it shows are lost with it. */
  disconnect(client: ConnectedClient): void {
    this.#clients.delete(client);
    for (const [request, { state }] of [...this.#asked])
      if (isOnScreen(state) && state.client === client)
        void this.formEnded(client, state.session, request, {
          kind: 'lost',
          why: 'the connection to the client was lost',
        });
  }

  /** A form goes to a client of the session's owner, once, and only while no other shows it. */
  canAsk(client: ConnectedClient, session: AskingSession, request: OpenRequest): boolean {
    if (!this.#showsFormsOf(client, session)) return false;
    const asked = this.#asked.get(request);
    if (asked === undefined) return true;
    // Where requests are kept, a form that was closed is shown again to clients that connect later.
    const isOver = asked.state.kind === 'lost' || (asked.state.kind === 'closed' && this.#unanswerable === 'kept');
    return isOver && !asked.clients.has(client);
  }

  #showsFormsOf(client: ConnectedClient, session: AskingSession): boolean {
    return client.showsForms && client.principal.id === session.owner.id && this.#personDecides(session, client);
  }

  /** Throws if a request of this session would be refused at once, because no one who may decide can be reached. */
  checkCanBeDecided(session: AskingSession): void {
    if (this.#unanswerable === 'kept' || this.callerDecides(session)) return;
    if (![...this.#clients].some((client) => this.#showsFormsOf(client, session)))
      throw new DomainError('PERMISSION_DENIED', `Nothing was changed. ${unanswerable(NO_FORMS)}`);
  }

  /** Whether a person has a form for it open. */
  isAskingPerson(request: OpenRequest): boolean {
    return this.#asked.get(request)?.state.kind === 'shown';
  }

  /** Whether a waiting call should ignore the request: the caller may not decide, or a person is about to. */
  holdsWait(session: Pick<AskingSession, 'approvals'>, request: OpenRequest, client?: ConnectedClient): boolean {
    return !this.callerDecides(session, client) || this.isAskingPerson(request);
  }

  /** A script that fills in its own form is not a person: where callers may not decide, the client must be attended. */
  #personDecides({ approvals }: AskingSession, { principal, rules }: ConnectedClient): boolean {
    const modes = rules ? [approvals, rules.settings.approvals] : [approvals];
    return modes.every((mode) => DECIDERS[mode].has('person') && (callersDecide(mode) || principal.attended));
  }

  // ── the life of a form ─────────────────────────────────────────────────────────────────────────────────────────

  /** Gets a request answered: asks a person if one may decide and can be asked, and refuses it if no one can. */
  requested(session: AskingSession, request: OpenRequest): void {
    if (!this.#askPerson(session, request)) this.#leaveToCaller(session, request, NO_FORMS);
  }

  /** Claims the request for this client, which shows the form from now on. Returns false if it may not. */
  beginForm(client: ConnectedClient, session: AskingSession, request: OpenRequest): boolean {
    if (request.settled.aborted || !this.canAsk(client, session, request)) return false;
    const clients = this.#asked.get(request)?.clients ?? new Set();
    if (!this.#asked.has(request))
      request.settled.addEventListener('abort', () => this.#forget(request), { once: true });
    const cancelExpiry = this.#clock.after(FORM_LIFETIME_MS, () => this.#expire(client, session, request));
    this.#asked.set(request, {
      state: { kind: 'shown', client, session, cancelExpiry },
      clients: clients.add(client),
    });
    return true;
  }

  /** The form was never sent: this client may ask again. */
  withdrawForm(client: ConnectedClient, session: AskingSession, request: OpenRequest): void {
    if (!this.#isShownBy(client, request)) return;
    this.#asked.get(request)?.clients.delete(client);
    this.#moveTo(request, { kind: 'lost' });
    session.notices.tell({ kind: 'changed' });
  }

  /** Resolves when the answer has counted, or has been refused. Never rejects. */
  async formEnded(client: ConnectedClient, session: AskingSession, request: OpenRequest, end: FormEnd): Promise<void> {
    // Settled elsewhere: the first answer wins.
    const isOpen = (): boolean => session.findRequest(request.id) === request && this.#isShownBy(client, request);
    if (!isOpen()) return;
    if (end.kind !== 'answered') return this.#unanswered(session, request, end);
    try {
      await session.checkFresh(request.id, end.answer);
      if (isOpen()) session.respond(request.id, end.answer, 'human', client.principal);
    } catch (error) {
      if (isOpen()) this.#unanswered(session, request, { kind: 'closed', why: messageOf(error) });
    }
  }

  /** A person answered, but the answer did not reach the session. */
  answerLost(session: AskingSession, request: OpenRequest, why: string): void {
    this.#unanswered(session, request, { kind: 'lost', why });
  }

  #unanswered(
    session: AskingSession,
    request: OpenRequest,
    { kind, why }: Exclude<FormEnd, { kind: 'answered' }>,
  ): void {
    this.#moveTo(request, { kind });
    if (kind === 'closed' || !this.#askPerson(session, request)) this.#leaveToCaller(session, request, why);
    session.notices.tell({ kind: 'changed' });
  }

  #expire(client: ConnectedClient, session: AskingSession, request: OpenRequest): void {
    this.#moveTo(request, { kind: 'expired', client, session });
    session.notices.tell({ kind: 'changed' });
  }

  /** True when a person is being asked, or a waiting call of theirs can. The client that started the session comes first. */
  #askPerson(session: AskingSession, request: OpenRequest): boolean {
    const own = session.client && this.#clients.has(session.client) ? [session.client] : [];
    const client = [...own, ...this.#clients].find((one) => this.canAsk(one, session, request));
    if (client?.showForm && this.beginForm(client, session, request))
      this.#gate.afterStored(() => this.#showForm(client, session, request));
    return client !== undefined;
  }

  /** It may have been settled, or the client may have gone, while it was being stored. */
  #showForm(client: ConnectedClient, session: AskingSession, request: OpenRequest): void {
    if (!this.#isShownBy(client, request)) return;
    const { id, options } = session;
    void client
      .showForm?.({ id, options }, recordOf(request), request.settled)
      .then((end) => this.formEnded(client, session, request, end));
  }

  #leaveToCaller(session: AskingSession, request: OpenRequest, why: string): void {
    if (this.#unanswerable === 'kept' || this.callerDecides(session)) return;
    if (session.findRequest(request.id) !== request) return;
    session.decide(request.id, { behavior: 'deny', message: unanswerable(why) }, 'policy');
  }

  #isShownBy(client: ConnectedClient, request: OpenRequest): boolean {
    const state = this.#asked.get(request)?.state;
    return state !== undefined && isOnScreen(state) && state.client === client;
  }

  #moveTo(request: OpenRequest, state: Exclude<FormState, { kind: 'shown' }>): void {
    const asked = this.#asked.get(request);
    if (!asked) return;
    if (asked.state.kind === 'shown') asked.state.cancelExpiry();
    asked.state = state;
  }

  #forget(request: OpenRequest): void {
    const asked = this.#asked.get(request);
    if (asked?.state.kind === 'shown') asked.state.cancelExpiry();
    this.#asked.delete(request);
  }
}

function isOnScreen(state: FormState): state is Extract<FormState, { client: ConnectedClient }> {
  return state.kind === 'shown' || state.kind === 'expired';
}

const NO_FORMS = 'the connected client cannot show a form (MCP elicitation)';

function unanswerable(why: string): string {
  return `Only a person may decide this here, and ${why}. No person refused it: continue without it if you can, or say what you need and stop.`;
}
