import type { Clock } from '../clock.ts';

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
