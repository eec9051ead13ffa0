import type { TranscriptMirror } from '../../driver/sdk-options.ts';
import type { Registry } from '../session/registry.ts';
import type { EngineServices } from '../ports.ts';
import { heldElsewhere } from '../session/session-errors.ts';
import type { TranscriptLock } from '../session/session-types.ts';
import type { Session } from '../session/session.ts';

/**
 * Access to transcripts across processes and machines: two must not write one, and none may continue an outdated one.
 */
export class TranscriptAccess {
  readonly #services: Pick<EngineServices, 'transcripts' | 'transcriptMirrors' | 'kept'>;
  readonly #registry: Registry;
  /** Sessions that no other machine has continued since this one wrote their transcript last. */
  readonly #current = new WeakSet<Session>();

  constructor(services: Pick<EngineServices, 'transcripts' | 'transcriptMirrors' | 'kept'>, registry: Registry) {
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
  async lock(sessionId: string): Promise<TranscriptLock> {
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
    const { transcriptMirrors: mirrors } = this.#services;
    const session = this.#registry.find(sessionId);
    if (!mirrors || !session?.mobility.portable || this.#current.has(session)) return false;
    const fetched = await mirrors.fetch(session, session.directory ?? '');
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
