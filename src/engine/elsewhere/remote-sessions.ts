import { messageOf } from '../../errors/errors.ts';
import type { Answer } from '../../schema/commands.ts';
import type { Approvals } from '../requests/approvals.ts';
import { msBetween, type Clock, type Instant } from '../clock.ts';
import type { CanRun, Known, OtherHubs } from './elsewhere.ts';
import type { Principal } from '../rules/access.ts';
import { RemoteSession, type RemoteServices } from './remote-session.ts';
import type { OpenRequest } from '../requests/requests.ts';

/** How long a session is still followed after the last request for it. */
const KEPT_MS = 300_000;
/** Writes come in bursts; one look is enough. */
const LOOK_AFTER_MS = 5;

interface Followed {
  readonly session: RemoteSession;
  usedAt: Instant;
  /** Looks are sequential: the view must not go back in time. */
  looking: Promise<unknown>;
}

export interface RemoteSessionsServices extends Omit<RemoteServices, 'sendAnswer'> {
  readonly clock: Clock;
  readonly others: OtherHubs;
  readonly approvals: Pick<Approvals, 'requested' | 'answerLost'>;
  readonly canRun: CanRun;
  readonly debug: (line: string) => void;
}

/** Sessions that other hubs run and that are in use here: kept in sync with the store for as long as they are used. */
export class RemoteSessions {
  readonly #services: RemoteSessionsServices;
  readonly #followed = new Map<string, Followed>();
  readonly #opening = new Map<string, Promise<Followed | undefined>>();
  #unsubscribe: (() => void) | undefined;
  #looksAt: NodeJS.Timeout | undefined;

  constructor(services: RemoteSessionsServices) {
    this.#services = services;
  }

  get all(): RemoteSession[] {
    return [...this.#followed.values()].map(({ session }) => session);
  }

  /** As it was at the last look. */
  peek(id: string): RemoteSession | undefined {
    return this.#followed.get(id)?.session;
  }

  /** The session as currently stored; undefined if no other hub has it. */
  async find(id: string): Promise<RemoteSession | undefined> {
    const known = this.#followed.get(id);
    const followed = known && (await this.#look(known)) ? known : await this.#opened(id);
    if (!followed) return undefined;
    followed.usedAt = this.#services.clock.instant();
    return followed.session;
  }

  /** Nothing is followed any more. */
  close(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    clearTimeout(this.#looksAt);
    this.#looksAt = undefined;
    this.#followed.clear();
  }

  #opened(id: string): Promise<Followed | undefined> {
    const opening = this.#opening.get(id) ?? this.#open(id).finally(() => this.#opening.delete(id));
    this.#opening.set(id, opening);
    return opening;
  }

  async #open(id: string): Promise<Followed | undefined> {
    const { others, clock, canRun } = this.#services;
    const seen = await others.see(id, canRun);
    if (seen === undefined || seen === 'unchanged') return undefined;
    const session = new RemoteSession(seen, {
      ...this.#services,
      sendAnswer: (of, requestId, answer, by) => this.#sendAnswer(of, requestId, answer, by),
    });
    const followed: Followed = { session, usedAt: clock.instant(), looking: Promise.resolve() };
    this.#followed.set(id, followed);
    this.#unsubscribe ??= others.onStored(() => this.#lookSoon());
    this.#ask(session, session.requests);
    return followed;
  }

  #ask(session: RemoteSession, requests: readonly OpenRequest[]): void {
    for (const request of requests) this.#services.approvals.requested(session, request);
  }

  /** False if no other hub has it any more. */
  #look(followed: Followed): Promise<boolean> {
    const look = followed.looking.then(() => this.#lookNow(followed));
    followed.looking = look.catch(() => undefined);
    return look;
  }

  async #lookNow(followed: Followed): Promise<boolean> {
    const { session } = followed;
    const { others, canRun } = this.#services;
    if (this.#followed.get(session.id) !== followed) return false;
    const seen = await others.see(session.id, canRun, knownOf(session));
    if (seen === 'unchanged') return true;
    if (seen?.hub !== session.hub) {
      this.#drop(followed);
      return false;
    }
    this.#ask(session, session.update(seen));
    session.notices.tell({ kind: 'changed' });
    return true;
  }

  /** Anyone still waiting for it looks it up again, and finds where it is now. */
  #drop({ session }: Followed): void {
    this.#followed.delete(session.id);
    session.leave();
    if (this.#followed.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  #lookSoon(): void {
    this.#looksAt ??= setTimeout(() => {
      this.#looksAt = undefined;
      this.#lookAll().catch((error: unknown) => this.#services.debug(`sessions elsewhere: ${messageOf(error)}`));
    }, LOOK_AFTER_MS).unref();
  }

  async #lookAll(): Promise<void> {
    const now = this.#services.clock.instant();
    for (const followed of this.#followed.values()) {
      const isWanted = followed.session.notices.listenerCount > 0 || msBetween(followed.usedAt, now) < KEPT_MS;
      if (!isWanted) this.#drop(followed);
    }
    const known = new Map([...this.#followed].map(([id, { session }]) => [id, knownOf(session)]));
    const changed = await this.#services.others.changed(known);
    await Promise.all(changed.flatMap((id) => this.#followed.get(id) ?? []).map((one) => this.#look(one)));
  }

  #sendAnswer(session: RemoteSession, requestId: string, answer: Answer, principal: Principal): void {
    const { others, approvals, debug } = this.#services;
    const by = { principal, settings: session.settings };
    const command = { kind: 'form', sessionId: session.id, requestId, answer } as const;
    others.carryOut<'form'>(session.hub, command, by).catch((error: unknown) => {
      debug(`an answer for ${session.id}: ${messageOf(error)}`);
      const request = session.findRequest(requestId);
      if (request) approvals.answerLost(session, request, messageOf(error));
    });
  }
}

/** Whether this hub may take it over when the other one is gone depends on where that one is. */
function knownOf({ hub, record, seen: { position, lastEventId, isForOthers } }: RemoteSession): Known {
  return { position, lastEventId, hub, movable: record.continuity.movable && !isForOthers };
}
