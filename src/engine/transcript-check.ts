import type { Clock } from './clock.ts';

/** Claude Code writes its transcript a moment after it has answered. */
const WRITTEN_WITHIN_MS = 2_000;

export interface TranscriptCheckOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly isInTranscript: (messageId: string) => Promise<boolean>;
  /** The last turn is not on disk. Called once, until a later turn is. */
  readonly onMissing: () => void;
}

/**
 * Notices that Claude Code did not write a turn down, which it does not say itself: on a full disk it answers as usual,
 * and the session cannot be resumed. Looks after the turn, so that no answer waits for it.
 */
export class TranscriptCheck {
  readonly #options: TranscriptCheckOptions;
  #last: string | undefined;
  #cancel: () => void = () => undefined;
  #found: 'written' | 'missing' = 'written';

  constructor(options: TranscriptCheckOptions) {
    this.#options = options;
  }

  /** A turn has begun with this message. */
  delivered(messageId: string): void {
    this.#last = messageId;
    this.#cancel();
  }

  turnEnded(): void {
    const messageId = this.#last;
    if (messageId === undefined) return;
    this.#cancel();
    this.#cancel = this.#options.clock.after(WRITTEN_WITHIN_MS, () => void this.#look(messageId));
  }

  async #look(messageId: string): Promise<void> {
    const { isInTranscript, onMissing } = this.#options;
    // A file that cannot be read is another problem, which resuming will report.
    const isWritten = await isInTranscript(messageId).catch(() => true);
    if (messageId !== this.#last) return;
    const before = this.#found;
    this.#found = isWritten ? 'written' : 'missing';
    if (!isWritten && before === 'written') onMissing();
  }
}
