import type { Mobility } from './mobility.ts';
import { NoticeStream, type SessionNotice } from '../notices.ts';
import { outOfContact, runsElsewhere } from './session-errors.ts';
import { SessionFacts } from './session-facts.ts';
import { lostContact } from '../conversation/turn-result.ts';

/** The part of a session that deals with the hubs it may run on. */
export abstract class MovableSession extends SessionFacts {
  /** What must be provided again before it can run. */
  abstract missing: readonly string[];
  readonly notices = new NoticeStream<SessionNotice>();
  protected abstract readonly mobility: Mobility;

  /** Only ends the process. */
  abstract dispose(): Promise<void>;
  /** Ends the process and leaves everything else unchanged. */
  abstract suspend(): Promise<void>;

  /** Another hub may take it over when this one is gone. */
  get movable(): boolean {
    return this.mobility.movable;
  }

  /** Another hub takes it over when this one goes silent. */
  get lent(): boolean {
    return this.mobility.lent;
  }

  /** It works where other hubs can, and has no values that only this hub knows. */
  get portable(): boolean {
    return this.mobility.isPortable(this);
  }

  /** Where it works; undefined only for a session whose client named no directory. */
  get directory(): string | undefined {
    return this.options.cwd ?? this.rules.policy.directories.own;
  }

  /** Another hub could not continue it from here on: it stays on this machine. */
  stays(reason: string): void {
    if (this.mobility.stays()) {
      this.services.debug(`session ${this.id} stays on this machine: ${reason}`);
      this.notices.tell({ kind: 'changed' });
    } else if (!this.lent) return;
    // Until the store says that it stays, others may take it over. If the store is unavailable, this is retried with the
    // next failed repair.
    this.services.stored?.().then(
      () => {
        this.mobility.told();
        this.process.live?.setLent(this.lent);
      },
      () => undefined,
    );
  }

  /** Whatever kept it here is repaired. */
  mayMoveAgain(): void {
    if (this.missing.length > 0 || !this.mobility.mayMoveAgain(this)) return;
    this.process.live?.setLent(true);
    this.notices.tell({ kind: 'changed' });
  }

  /** It now runs elsewhere: waiting callers must look it up again. */
  get hasLeft(): boolean {
    return this.mobility.hasLeft;
  }

  leave(): void {
    this.mobility.hasLeft = true;
    this.notices.tell({ kind: 'changed' });
  }

  /** This hub may no longer run it. Requests stay open; a working turn comes to rest and says why. */
  async loseContact(): Promise<void> {
    if (!this.holdsPlace) return;
    if (this.keepsRequests && this.state === 'waiting') this.conversation.detach();
    else if (!this.conversation.atRest) this.conversation.fail(lostContact(this.conversation.outbox.takeUndelivered()));
    this.process.abortStart(outOfContact(this.id));
    await this.dispose();
  }

  /** Another hub has it: from here on nothing that happens to this copy is reported. */
  async disown(): Promise<void> {
    this.leave();
    this.process.abortStart(runsElsewhere(this.id));
    await this.suspend();
  }
}
