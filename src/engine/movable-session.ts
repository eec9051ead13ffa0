import type { Mobility } from './mobility.ts';
import { NoticeStream, type SessionNotice } from './notices.ts';
import { outOfTouch, runsElsewhere } from './session-errors.ts';
import { SessionFacts } from './session-facts.ts';
import { lostTouch } from './turn-result.ts';

/** What of a session is about the hubs it may run on. */
export abstract class MovableSession extends SessionFacts {
  abstract readonly id: string;
  /** What somebody has to bring again before it can run. */
  abstract missing: readonly string[];
  readonly notices = new NoticeStream<SessionNotice>();
  protected abstract readonly mobility: Mobility;

  /** Ends the process, and nothing else. */
  abstract dispose(): Promise<void>;
  /** Ends the process and leaves all else as it is. */
  abstract suspend(): Promise<void>;

  /** Another hub may take it over when this one is gone. */
  get movable(): boolean {
    return this.mobility.movable;
  }

  /** It works where other hubs can, and has nothing that only this one knows. */
  get portable(): boolean {
    return this.mobility.isPortable(this);
  }

  /** Where it works; none only in a session that no client named a directory for. */
  get directory(): string | undefined {
    return this.options.cwd ?? this.rules.policy.directories.own;
  }

  /** Another hub could not continue it from here on: it stays with this machine. */
  stays(reason: string): void {
    if (!this.mobility.stays()) return;
    this.services.debug(`session ${this.id} stays on this machine: ${reason}`);
    this.notices.tell({ kind: 'changed' });
    // Until others can read that it stays, they may take it over: until then its process ends with the lease.
    this.services.stored?.().then(
      () => this.process.live?.setLent(this.movable),
      () => undefined,
    );
  }

  /** What made it stay is repaired. */
  mayMoveAgain(): void {
    if (this.missing.length > 0 || !this.mobility.mayMoveAgain(this)) return;
    this.process.live?.setLent(true);
    this.notices.tell({ kind: 'changed' });
  }

  /** It runs elsewhere than it did: whoever waits for it has to look for it again. */
  get hasLeft(): boolean {
    return this.mobility.hasLeft;
  }

  leave(): void {
    this.mobility.hasLeft = true;
    this.notices.tell({ kind: 'changed' });
  }

  /** This hub may no longer run it. Requests stay open; a turn at work rests, and says why. */
  async loseTouch(): Promise<void> {
    if (!this.holdsPlace) return;
    if (this.keepsRequests && this.state === 'waiting') this.conversation.detach();
    else if (!this.conversation.atRest) this.conversation.fail(lostTouch(this.conversation.outbox.takeUndelivered()));
    this.process.abortStart(outOfTouch(this.id));
    await this.dispose();
  }

  /** Another hub has it: from here on nothing that happens to this copy is told to anybody. */
  async disown(): Promise<void> {
    this.leave();
    this.process.abortStart(runsElsewhere(this.id));
    await this.suspend();
  }
}
