import type { SessionArchive } from './ports.ts';

/**
 * The way out of the engine. A form, a decision for Claude Code or an audit record leaves only when everything that led
 * to it is stored: otherwise a crash could undo what somebody has already seen or done. Without a store nothing waits.
 */
export class Gate {
  readonly #archive: Pick<SessionArchive, 'everStored'> | undefined;
  readonly #onFailed: (error: unknown) => void;

  /** `onFailed`: something could not be sent; whoever caused it has long gone on. */
  constructor(archive?: Pick<SessionArchive, 'everStored'>, onFailed: (error: unknown) => void = () => undefined) {
    this.#archive = archive;
    this.#onFailed = onFailed;
  }

  /** Calls `send` in order, however long the store takes; never if this process ends before that. */
  afterStored(send: () => void): void {
    const stored = this.#archive?.everStored();
    if (stored) stored.then(send).catch(this.#onFailed);
    else this.#sendNow(send);
  }

  #sendNow(send: () => void): void {
    try {
      send();
    } catch (error) {
      this.#onFailed(error);
    }
  }

  /** Resolves when what has happened so far is stored, or at once when `withdrawn` says that nobody waits for it. */
  passed(withdrawn: AbortSignal): Promise<void> | undefined {
    const stored = this.#archive?.everStored();
    if (!stored || withdrawn.aborted) return undefined;
    return new Promise((resolve) => {
      const pass = (): void => {
        withdrawn.removeEventListener('abort', pass);
        resolve();
      };
      withdrawn.addEventListener('abort', pass);
      void stored.then(pass);
    });
  }
}
