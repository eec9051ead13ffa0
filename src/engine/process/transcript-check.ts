import type { TranscriptMirror } from '../../driver/sdk-options.ts';
import { msBetween, type Clock } from '../clock.ts';
import type { EngineServices } from '../ports.ts';
import type { Registry } from '../session/registry.ts';
import { heldElsewhere } from '../session/session-errors.ts';
import type { Session } from '../session/session.ts';
import type { SessionLock } from '../../transcripts/session-lock.ts';

/** Longer than a hub keeps its sessions without its store: where they can move, another one has them by then. */
const FETCH_PATIENCE_MS = 20_000;

type AccessServices = Pick<EngineServices, 'clock' | 'transcripts' | 'transcriptMirrors' | 'kept'>;

/**
 * Access to transcripts across processes and machines: two must not write one, and none may continue an outdated one.
 */
export class TranscriptAccess {
  readonly #services: AccessServices;
  readonly #registry: Registry;
  /** Sessions that no other machine has continued since this one wrote their transcript last. */
  readonly #current = new WeakSet<Session>();

  constructor(services: AccessServices, registry: Registry) {
    this.#services = services;
    this.#registry = registry;
  }

  /** Throws if a process that is not ours has the session open. */
  async checkNotHeld(sessionId: string): Promise<void> {
    const { transcripts, kept } = this.#services;
    const isOurs = (pid: number): boolean => this.#registry.hasProcess(pid) || kept?.has(pid) === true;
    const holder = await transcripts.findHolder(sessionId, isOurs);
    if (holder) throw heldElsewhere(sessionId, holder.pid);
  }

  /** Holders are checked again under the lock: a transcript that was free a moment ago may not be any more. */
  async lock(sessionId: string): Promise<SessionLock> {
    const lock = await this.#services.transcripts.lock(sessionId);
    if ('pid' in lock) throw heldElsewhere(sessionId, lock.pid, 'server');
    try {
      await this.checkNotHeld(sessionId);
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** Where sessions can move, a recalled one may have been continued elsewhere. Returns whether it was. */
  async fetch(sessionId: string): Promise<boolean> {
    const { clock, transcriptMirrors: mirrors } = this.#services;
    const session = this.#registry.find(sessionId);
    if (!mirrors || !session?.mobility.portable || this.#current.has(session)) return false;
    const begun = clock.instant();
    const isGivenUp = () => session.process.closing || msBetween(begun, clock.instant()) > FETCH_PATIENCE_MS;
    const fetched = await mirrors.fetch(session, session.directory ?? '', isGivenUp);
    this.#current.add(session);
    return fetched;
  }

  /** For the next process of this session. */
  mirrorOf(session: Session): TranscriptMirror | undefined {
    const { transcriptMirrors: mirrors } = this.#services;
    if (!mirrors || !session.mobility.portable) return undefined;
    this.#current.add(session);
    return mirrors.open(session, {
      onBroken: (reason) => session.mobility.stays(reason),
      onWhole: () => session.mobility.mayMoveAgain(),
    });
  }
}

/** Claude Code writes its transcript a moment after it has answered. */
const WRITTEN_WITHIN_MS = 2_000;

export interface TranscriptCheckServices {
  readonly clock: Pick<Clock, 'after' | 'wallTime'>;
  /** `since`: when the turn with this message began, in the time of the file system. */
  isWritten(sessionId: string, messageId: string, since: number): Promise<boolean>;
}

interface CheckedSession {
  readonly id: string;
  /** The last turn is not on disk. Called once, until a later turn is. */
  turnNotWritten(): void;
}

interface Turn {
  readonly messageId: string;
  readonly since: number;
}

/**
 * Notices that Claude Code did not write a turn down, which it does not say itself: on a full disk it answers as usual,
 * and the session cannot be resumed. Looks after the turn, so that no answer waits for it.
 */
export class TranscriptCheck {
  readonly #session: CheckedSession;
  readonly #services: TranscriptCheckServices;
  #last: Turn | undefined;
  #cancelTimer: (() => void) | undefined;
  #found: 'written' | 'missing' = 'written';

  constructor(session: CheckedSession, services: TranscriptCheckServices) {
    this.#session = session;
    this.#services = services;
  }

  /** A turn has begun with this message. */
  delivered(messageId: string): void {
    this.#last = { messageId, since: this.#services.clock.wallTime() };
    this.#cancel();
  }

  turnEnded(): void {
    const turn = this.#last;
    if (turn === undefined) return;
    this.#cancel();
    this.#cancelTimer = this.#services.clock.after(WRITTEN_WITHIN_MS, () => {
      this.#cancelTimer = undefined;
      void this.#look(turn);
    });
  }

  /** What the process has not written by its end, it never will. */
  processEnded(): void {
    if (this.#cancel() && this.#last) void this.#look(this.#last);
  }

  /** Returns whether a look was due. */
  #cancel(): boolean {
    const cancelTimer = this.#cancelTimer;
    this.#cancelTimer = undefined;
    cancelTimer?.();
    return cancelTimer !== undefined;
  }

  async #look(turn: Turn): Promise<void> {
    const { messageId, since } = turn;
    // A file that cannot be read is another problem, which resuming will report.
    const wasWritten = await this.#services.isWritten(this.#session.id, messageId, since).catch(() => true);
    if (turn !== this.#last) return;
    const before = this.#found;
    this.#found = wasWritten ? 'written' : 'missing';
    if (!wasWritten && before === 'written') this.#session.turnNotWritten();
  }
}
