import type { SessionArchive } from './ports.ts';

/**
 * The way out of the engine. A form, a decision for Claude Code or an audit record leaves only when everything that led
 * to it is stored: otherwise a crash could undo what somebody has already seen or done. Without a store nothing waits.
 */
export class Gate {
  readonly #archive: Pick<SessionArchive, 'everStored'> | undefined;

  constructor(archive?: Pick<SessionArchive, 'everStored'>) {
    this.#archive = archive;
  }

  /** Calls `send` in order, however long the store takes; never if this process ends before that. */
  afterStored(send: () => void): void {
    const stored = this.#archive?.everStored();
    if (stored) void stored.then(send);
    else send();
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
