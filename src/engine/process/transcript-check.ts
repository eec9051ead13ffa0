import type { Clock } from '../clock.ts';

/** Claude Code writes its transcript a moment after it has answered. */
const WRITTEN_WITHIN_MS = 2_000;

export interface TranscriptCheckOptions {
  readonly clock: Pick<Clock, 'after' | 'wallTime'>;
  /** `since`: when the turn with this message began, in the time of the file system. */
  readonly isWritten: (messageId: string, since: number) => Promise<boolean>;
  /** The last turn is not on disk. Called once, until a later turn is. */
  readonly onMissing: () => void;
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
  readonly #options: TranscriptCheckOptions;
  #last: Turn | undefined;
  #cancel: () => void = () => undefined;
  #found: 'written' | 'missing' = 'written';

  constructor(options: TranscriptCheckOptions) {
    this.#options = options;
  }

  /** A turn has begun with this message. */
  delivered(messageId: string): void {
    this.#last = { messageId, since: this.#options.clock.wallTime() };
    this.#cancel();
  }

  turnEnded(): void {
    const turn = this.#last;
    if (turn === undefined) return;
    this.#cancel();
    this.#cancel = this.#options.clock.after(WRITTEN_WITHIN_MS, () => void this.#look(turn));
  }

  async #look(turn: Turn): Promise<void> {
    const { isWritten, onMissing } = this.#options;
    // A file that cannot be read is another problem, which resuming will report.
    const wasWritten = await isWritten(turn.messageId, turn.since).catch(() => true);
    if (turn !== this.#last) return;
    const before = this.#found;
    this.#found = wasWritten ? 'written' : 'missing';
    if (!wasWritten && before === 'written') onMissing();
  }
}
