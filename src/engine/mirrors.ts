import { messageOf } from '../errors/errors.ts';
import type { Answer } from './answer.ts';
import type { Approvals } from './approvals.ts';
import { msBetween, type Clock, type Instant } from './clock.ts';
import type { CanRun, Known, OrderedBy, OtherHubs, SeenElsewhere } from './elsewhere.ts';
import type { Principal } from './principal.ts';
import type { RecalledSession } from './services.ts';
import type { SendAnswer, SessionElsewhere } from './session-elsewhere.ts';
import type { RestoredSession } from './session-types.ts';
import type { Session } from './session.ts';

/** How long a session is still followed after the last request for it. */
const KEPT_MS = 300_000;
/** Writes come in bursts; one look is enough. */
const LOOK_AFTER_MS = 5;

interface Mirror {
  readonly session: SessionElsewhere;
  position: number;
  lastEventId: number;
  /** This hub may take it over when the other one is gone. */
  movable: boolean;
  usedAt: Instant;
  /** Looks are sequential: the view must not go back in time. */
  looking: Promise<unknown>;
}

export interface MirrorServices {
  readonly clock: Clock;
  readonly others: OtherHubs;
  readonly approvals: Pick<Approvals, 'requested' | 'answerLost'>;
  readonly make: (seen: RecalledSession, sendAnswer: SendAnswer) => Promise<SessionElsewhere>;
  readonly restored: (seen: RecalledSession) => Promise<RestoredSession>;
  readonly canRun: CanRun;
  readonly debug: (line: string) => void;
}

/** Sessions that run elsewhere and are in use here: kept in sync with the store for as long as they are used. */
export class Mirrors {
  readonly #services: MirrorServices;
  readonly #mirrors = new Map<string, Mirror>();
  readonly #making = new Map<string, Promise<Mirror | undefined>>();
  #unsubscribe: (() => void) | undefined;
  #looksAt: NodeJS.Timeout | undefined;

  constructor(services: MirrorServices) {
    this.#services = services;
  }

  get all(): Session[] {
    return [...this.#mirrors.values()].map(({ session }) => session);
  }

  /** As it was at the last look. */
  peek(id: string): Session | undefined {
    return this.#mirrors.get(id)?.session;
  }

  /** The session as currently stored; undefined if it does not run elsewhere. */
  async find(id: string): Promise<Session | undefined> {
    const known = this.#mirrors.get(id);
    const mirror = known && (await this.#look(known)) ? known : await this.#made(id);
    if (!mirror) return undefined;
    mirror.usedAt = this.#services.clock.instant();
    return mirror.session;
  }

  /** Nothing is followed any more. */
  close(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    clearTimeout(this.#looksAt);
    this.#looksAt = undefined;
    this.#mirrors.clear();
  }

  #made(id: string): Promise<Mirror | undefined> {
    const making = this.#making.get(id) ?? this.#make(id).finally(() => this.#making.delete(id));
    this.#making.set(id, making);
    return making;
  }

  async #make(id: string): Promise<Mirror | undefined> {
    const { others, make, clock, canRun } = this.#services;
    const seen = await others.see(id, canRun);
    if (seen === undefined || seen === 'unchanged') return undefined;
    const session = await make(seen, (of, requestId, answer, by) => this.#sendAnswer(of, requestId, answer, by));
    const { position, lastEventId } = seen;
    const mirror: Mirror = {
      session,
      position,
      lastEventId,
      movable: mayTakeOver(seen),
      usedAt: clock.instant(),
      looking: Promise.resolve(),
    };
    this.#mirrors.set(id, mirror);
    this.#unsubscribe ??= others.onStored(() => this.#lookSoon());
    this.#ask(session, session.requests);
    return mirror;
  }

  #ask(session: Session, requests: Session['requests']): void {
    for (const request of requests) this.#services.approvals.requested(session, request);
  }

  /** False if it no longer runs elsewhere. */
  #look(mirror: Mirror): Promise<boolean> {
    const look = mirror.looking.then(() => this.#lookNow(mirror));
    mirror.looking = look.catch(() => undefined);
    return look;
  }

  async #lookNow(mirror: Mirror): Promise<boolean> {
    const { session } = mirror;
    const { others, canRun } = this.#services;
    if (this.#mirrors.get(session.id) !== mirror) return false;
    const seen = await others.see(session.id, canRun, knownOf(mirror));
    if (seen === 'unchanged') return true;
    if (seen?.row.runsOn.hub !== session.elsewhere) {
      this.#drop(mirror);
      return false;
    }
    await this.#reflect(mirror, seen);
    return true;
  }

  async #reflect(mirror: Mirror, seen: SeenElsewhere): Promise<void> {
    const { session } = mirror;
    const added = session.reflect(await this.#services.restored(seen));
    mirror.position = seen.position;
    mirror.lastEventId = seen.lastEventId;
    mirror.movable = mayTakeOver(seen);
    this.#ask(session, added);
    session.notices.tell({ kind: 'changed' });
  }

  /** Anyone still waiting for it looks it up again, and finds where it is now. */
  #drop({ session }: Mirror): void {
    this.#mirrors.delete(session.id);
    session.leave();
    if (this.#mirrors.size > 0) return;
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
    for (const mirror of this.#mirrors.values()) {
      const isWanted = mirror.session.isFollowed || msBetween(mirror.usedAt, now) < KEPT_MS;
      if (!isWanted) this.#drop(mirror);
    }
    const known = new Map([...this.#mirrors].map(([id, mirror]) => [id, knownOf(mirror)]));
    const changed = await this.#services.others.changed(known);
    const mirrors = changed.flatMap((id) => this.#mirrors.get(id) ?? []);
    await Promise.all(mirrors.map((mirror) => this.#look(mirror)));
  }

  #sendAnswer(session: Session, requestId: string, answer: Answer, principal: Principal): void {
    const { others, approvals, debug } = this.#services;
    const by: OrderedBy = { principal, settings: session.rules.settings };
    const target = { id: session.id, hub: session.elsewhere ?? '' };
    others.carryOut(target, { kind: 'form', requestId, answer }, by).catch((error: unknown) => {
      debug(`an answer for ${session.id}: ${messageOf(error)}`);
      const request = session.findRequest(requestId);
      if (request) approvals.answerLost(session, request, messageOf(error));
    });
  }
}

function mayTakeOver({ row, isForOthers }: SeenElsewhere): boolean {
  return row.movable === true && !isForOthers;
}

function knownOf({ session, position, lastEventId, movable }: Mirror): Known {
  return { position, lastEventId, movable, hub: session.elsewhere };
}
