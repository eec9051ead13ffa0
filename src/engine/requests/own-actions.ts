import { DomainError, formatError, messageOf } from '../../errors/errors.ts';
import type { RestsAs } from '../../schema/enums.ts';
import type { ActionUnderWay, LastAction, OwnAction } from '../../schema/own-action.ts';
import { settledWithin, type Clock } from '../clock.ts';
import type { RestoredConversation } from '../conversation/conversation-types.ts';
import type { State } from '../conversation/state.ts';
import type { Outcome, OwnRequest, Proposal } from './requests.ts';
import type { Session } from '../session/session.ts';

/** How soon an action is tried again that must not begin before its approval is stored. */
const STORE_RETRY_MS = 1_000;
/** How long a server that stops waits for what it has begun. */
const CLOSE_PATIENCE_MS = 2_000;

/** A person must allow it first: it is done when they allow this request, and `lastAction` says how it went. */
export interface Asked {
  readonly asked: string;
}

/** Whether the approval was given just now, or to an earlier process, which may have begun. */
export type Since = 'answer' | 'restart';

/** How an action ended, or what has to be asked instead, because things have changed since it was allowed. */
export type Performed = Pick<LastAction, 'outcome' | 'message'> | { readonly again: Proposal };

export interface OwnActionsContext {
  readonly clock: Clock;
  /** Resolves when everything so far is stored, where there is a store. */
  readonly stored: () => Promise<void> | undefined;
  readonly perform: (session: Session, action: OwnAction, since: Since, by: string | undefined) => Promise<Performed>;
  checkCanBeDecided(session: Session): void;
  readonly ended: (session: Session, last: LastAction) => void;
  debug(line: string): void;
}

/**
 * What the server does for callers once a person has allowed it. The approval is a request like any other, kept with
 * the action that it is about; whoever settles it, and whoever still waits for it, this carries the action out, once.
 */
export class OwnActions {
  readonly #context: OwnActionsContext;
  readonly #underWay = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(context: OwnActionsContext) {
    this.#context = context;
  }

  /** Throws if there is nobody to ask: whatever prepares the question need not be done then. */
  checkCanAsk(session: Session): void {
    this.#context.checkCanBeDecided(session);
  }

  /** Throws if the session is not at rest. */
  ask(session: Session, proposal: Proposal): Asked {
    const requestId = session.askPerson(proposal);
    if (session.findRequest(requestId)) return { asked: requestId };
    throw new DomainError('PERMISSION_DENIED', session.conversation.own.last?.message ?? 'Nobody could be asked.');
  }

  /** A person has allowed it. */
  allowed(session: Session, underWay: ActionUnderWay, since: Since): void {
    const running = this.#carryOut(session, underWay, since)
      .catch((error: unknown) => this.#context.debug(`${underWay.action.action} of ${session.id}: ${messageOf(error)}`))
      .finally(() => this.#underWay.delete(running));
    this.#underWay.add(running);
  }

  /** Begins nothing more; what was not begun is carried out by the next server process. */
  async close(): Promise<void> {
    this.#closing.abort();
    await settledWithin(this.#context.clock, CLOSE_PATIENCE_MS, Promise.all(this.#underWay));
  }

  async #carryOut(session: Session, { requestId, action, by }: ActionUnderWay, since: Since): Promise<void> {
    const { perform, ended } = this.#context;
    // Done before its approval is stored, a crash would leave it done by nobody.
    if (!(await this.#approvalStored()) || session.hasLeft) return;
    const performed = await perform(session, action, since, by).catch((error: unknown): Performed => ({
      outcome: 'failed',
      message: formatError(error),
    }));
    if (session.hasLeft) return;
    if ('again' in performed && session.state !== 'cancelled') {
      session.askPerson(performed.again);
      return;
    }
    const end =
      'again' in performed
        ? { outcome: 'failed' as const, message: 'The session was cancelled. Nothing was changed.' }
        : performed;
    const last = { action: action.action, requestId, ...end };
    ended(session, last);
    session.conversation.actionEnded(last);
  }

  /** False if the server stops first. */
  async #approvalStored(): Promise<boolean> {
    const { clock, stored } = this.#context;
    while (!this.#closing.signal.aborted) {
      try {
        await stored();
        return true;
      } catch {
        await new Promise<void>((resolve) => {
          const cancelTimer = clock.after(STORE_RETRY_MS, resolve);
          this.#closing.signal.addEventListener('abort', () => (cancelTimer(), resolve()), { once: true });
        });
      }
    }
    return false;
  }
}

const BACK_TO_REST: Partial<Record<State, RestsAs>> = { idle: 'rest', interrupted: 'stop', error: 'fail' };

/** The server's own action in one conversation: the one that was allowed and is not done yet, and how the last one went. */
export class OwnActionState {
  #underWay: ActionUnderWay | undefined;
  #last: LastAction | undefined;

  constructor(restored: Pick<RestoredConversation, 'actionUnderWay' | 'lastAction' | 'requests'> | undefined) {
    const { actionUnderWay, lastAction, requests = [] } = restored ?? {};
    // The answer did not reach the store, so nobody was told: the request is still open.
    const isOpen = requests.some(({ id }) => id === actionUnderWay?.requestId);
    this.#underWay = isOpen ? undefined : actionUnderWay;
    this.#last = lastAction;
  }

  /** The action that a person allowed and that is being carried out. */
  get underWay(): ActionUnderWay | undefined {
    return this.#underWay;
  }

  get last(): LastAction | undefined {
    return this.#last;
  }

  /**
   * A person is about to be asked, perhaps because what was allowed can no longer be carried out as it was shown. Returns
   * how the conversation comes back to rest afterwards; throws in a state in which nobody can be asked.
   */
  asks({ id, state }: { readonly id: string; readonly state: State }): RestsAs {
    if (state === 'cancelled')
      throw new DomainError('CANCELLED', `Session ${id} was cancelled, so nobody can be asked about it any more.`);
    const backTo = this.#underWay?.backTo ?? BACK_TO_REST[state];
    if (!backTo) throw new DomainError('SESSION_BUSY', `Session ${id} is ${state}.`);
    this.#underWay = undefined;
    return backTo;
  }

  /** What was allowed counts as work until it is done. Returns what that means for the conversation. */
  settled(requestId: string, { action, backTo }: OwnRequest, { decision, byName: by }: Outcome): RestsAs | 'answered' {
    if (decision.behavior === 'allow') {
      this.#underWay = { requestId, action, backTo, ...(by !== undefined && { by }) };
      return 'answered';
    }
    const message = `Nothing was changed. ${decision.message}`;
    this.#last = { action: action.action, requestId, outcome: 'denied', message };
    return backTo;
  }

  /** One way or another. Returns how the conversation comes back to rest, if it was carried out. */
  ended(last: LastAction): RestsAs | undefined {
    const backTo = this.#underWay?.backTo;
    this.#underWay = undefined;
    this.#last = last;
    return backTo;
  }
}
