import type { Registry } from './registry.ts';
import type { EngineServices } from './services.ts';
import { heldElsewhere } from './session-errors.ts';
import type { TranscriptLock } from './session-types.ts';

/** Keeps two processes from writing to one transcript, whichever server or terminal they belong to. */
export class TranscriptAccess {
  readonly #transcripts: EngineServices['transcripts'];
  readonly #registry: Registry;

  constructor(transcripts: EngineServices['transcripts'], registry: Registry) {
    this.#transcripts = transcripts;
    this.#registry = registry;
  }

  /** Throws if a process that is not ours has the session open. */
  async checkNotHeld(sessionId: string): Promise<void> {
    const holder = await this.#transcripts.findHolder(sessionId, (pid) => this.#registry.hasProcess(pid));
    if (holder) throw heldElsewhere(sessionId, holder.pid);
  }

  /** Holders are checked again under the lock: what was free a moment ago need not be any more. */
  async lock(sessionId: string): Promise<TranscriptLock> {
    const lock = await this.#transcripts.lock(sessionId);
    if ('pid' in lock) throw heldElsewhere(sessionId, lock.pid, 'server');
    try {
      await this.checkNotHeld(sessionId);
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }
}
