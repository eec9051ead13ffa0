import type { AgentListener, AgentProcess } from '../../driver/agent-process.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { AdoptableRun } from '../ports.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Message } from '../conversation/outbox.ts';
import { ProcessHolder, type Launched, type ProcessListener } from './process-holder.ts';
import { withPartialMessages } from '../conversation/session-setup.ts';
import type { SessionOrigin, SessionServices } from '../session/session-types.ts';
import { roundUsd, type Sums } from '../conversation/totals.ts';
import type { SessionLock } from '../../transcripts/session-lock.ts';

/** `first`: with the history the session was created with. `redelivery`: of what a dead process had not read. */
export type Occasion = 'first' | 'again' | 'redelivery';

export interface SessionProcessSeed {
  readonly id: string;
  readonly origin: SessionOrigin;
  readonly initTimeoutMs: number;
  readonly streamsText: boolean;
  /** Claude Code has answered before, so there is a transcript. */
  readonly hasAnswered: boolean;
  readonly arrivedAt: number | undefined;
}

/** The process of one session: how it is launched, and the lock on the transcript while there is one. */
export class SessionProcess {
  readonly holder: ProcessHolder;
  readonly streamsText: boolean;
  readonly #id: string;
  readonly origin: SessionOrigin;
  readonly #conversation: Conversation;
  readonly #services: SessionServices;
  #initTimeoutMs: number;
  #hasAnswered: boolean;
  #isAdopted = false;
  #arrivedAt: number | undefined;
  /** Held while there is a process on a transcript that other servers could open. */
  #lock: SessionLock | undefined;
  /** The next lock is taken only when the last one is released: it would look like someone else's. */
  #unlocking: Promise<void> | undefined;

  constructor(
    seed: SessionProcessSeed,
    conversation: Conversation,
    services: SessionServices,
    listener: ProcessListener,
  ) {
    this.#id = seed.id;
    this.origin = seed.origin;
    this.#initTimeoutMs = seed.initTimeoutMs;
    this.streamsText = seed.streamsText;
    this.#hasAnswered = seed.hasAnswered;
    this.#arrivedAt = seed.arrivedAt;
    this.#conversation = conversation;
    this.#services = services;
    this.holder = new ProcessHolder(services.clock, {
      onMessage: (translation) => {
        this.#hasAnswered ||= translation.event?.body.kind === 'result';
        listener.onMessage(translation);
      },
      onRequest: (ask) => listener.onRequest(ask),
      beforeMessage: async () => listener.beforeMessage?.(),
      onExit: (exit) => {
        listener.onExit(exit);
        void this.#unlock();
      },
    });
  }

  /** Its process was started by an earlier server. */
  get isAdopted(): boolean {
    return this.#isAdopted && this.holder.live !== undefined;
  }

  get initTimeoutMs(): number {
    return this.#initTimeoutMs;
  }

  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** The first event since it came from another machine, if it did. */
  get arrivedAt(): number | undefined {
    return this.#arrivedAt;
  }

  setInitTimeout(ms: number): void {
    this.#initTimeoutMs = ms;
  }

  /**
   * Throws if the budget has nothing left for a message: before a turn begins, which would replace the last result. The
   * transcript of a portable session is up to date only once it is locked: what it says of a killed turn has to wait.
   */
  async checkAffordable(options: SessionOptions, isPortable: boolean): Promise<void> {
    if (options.maxBudgetUsd === undefined) return;
    if (!isPortable) await this.#beginCounting('again');
    const { costUnknown, ...spent } = this.#conversation.totals.session;
    withBudgetLeft(options, { ...spent, ...(costUnknown && !isPortable && { costUnknown }) }, true);
  }

  /** Launches a process with these options. If it does not come up, the conversation's turn ends with the reason. */
  async launch(options: SessionOptions, first: Message | undefined, occasion: Occasion): Promise<void> {
    this.#isAdopted = false;
    try {
      await this.holder.start({
        launch: async (listener) => {
          await this.#lockTranscript(occasion);
          return this.#spawn(options, first, occasion, listener);
        },
        timeoutMs: this.#initTimeoutMs,
      });
    } catch (error) {
      this.#unlockWhenClosed();
      this.#conversation.startFailed(error, occasion !== 'redelivery');
      throw error;
    }
  }

  /** Continues a process that an earlier server started. */
  async adopt(options: SessionOptions, run: AdoptableRun): Promise<AgentProcess> {
    // Resumed or not, other servers could open its transcript by now.
    await this.#lockTranscript('again');
    this.#isAdopted = true;
    const asked = { sessionId: this.#id, history: this.origin, options };
    const whole = this.streamsText ? { ...asked, options: withPartialMessages(options) } : asked;
    return this.holder.adopt((listener) => {
      const { adopt } = this.#services;
      if (!adopt) throw new DomainError('INTERNAL', 'There is no keeper of processes.');
      return adopt(run, whole, listener);
    });
  }

  close(): void {
    this.holder.close();
    this.#conversation.processClosed();
    this.#unlockWhenClosed();
  }

  /** Closes the process, and resolves when it is gone and its transcript is free. */
  async dispose(): Promise<void> {
    this.close();
    await this.holder.closed();
    await this.#unlock();
  }

  /**
   * Held as long as there is a process: Claude Code registers itself some time after its start, and until then no other
   * server can know about it. A new transcript is unknown to everyone else.
   */
  async #lockTranscript(occasion: Occasion): Promise<void> {
    await this.#unlocking;
    if (occasion === 'first' && this.origin.kind !== 'resume') return;
    this.#lock ??= await this.#services.lockTranscript(this.#id);
  }

  #unlockWhenClosed(): void {
    this.holder
      .closed()
      .then(() => this.#unlock())
      .catch((error: unknown) => this.#services.debug(`lock: ${messageOf(error)}`));
  }

  async #unlock(): Promise<void> {
    const lock = this.#lock;
    if (!lock || this.holder.live !== undefined || this.holder.starting) return this.#unlocking;
    this.#lock = undefined;
    this.#unlocking = lock.release().catch((error: unknown) => this.#services.debug(`lock: ${messageOf(error)}`));
    await this.#unlocking;
  }

  async #spawn(
    given: SessionOptions,
    first: Message | undefined,
    occasion: Occasion,
    listener: AgentListener,
  ): Promise<Launched> {
    await this.#fetchTranscript(occasion);
    const history = await this.#beginCounting(occasion);
    const affordable = withBudgetLeft(given, this.#conversation.totals.session, first !== undefined);
    const options = this.streamsText ? withPartialMessages(affordable) : affordable;
    const whole = first && (await this.#withUnwritten(first));
    return { process: await this.#services.launch({ sessionId: this.#id, history, options }, listener), first: whole };
  }

  async #beginCounting(occasion: Occasion): Promise<SessionOrigin> {
    const history = occasion === 'first' ? this.origin : await this.#history();
    const counted = history.kind === 'fork' ? history.of : this.#id;
    const recorded = history.kind === 'new' ? 0 : await this.#services.recordedCostUsd(counted);
    this.#conversation.totals.beginProcess(recorded, history.kind === 'resume', this.#services.clock.wallTime());
    return history;
  }

  /** A killed process may not have written down its last prompts: they are repeated before the new one. */
  async #withUnwritten(first: Message): Promise<Message> {
    const texts: string[] = [];
    for (const { id, text } of this.#conversation.outbox.accepted)
      if (!(await this.#services.isInTranscript(this.#id, id))) texts.push(text);
    return { ...first, text: [...texts, first.text].join('\n\n') };
  }

  /** Every question about a transcript is answered from the file on this machine, so it must be up to date. */
  async #fetchTranscript(occasion: Occasion): Promise<void> {
    const isOwn = occasion !== 'first' || this.origin.kind === 'resume';
    if (isOwn && (await this.#services.fetchTranscript?.(this.#id))) this.#arrivedAt = this.#conversation.log.nextId;
    if (this.origin.kind === 'fork') await this.#services.fetchTranscript?.(this.origin.of);
  }

  /**
   * A process that was killed before it wrote a message left nothing to resume: the session starts over. One that has
   * answered had a transcript; if that is gone now, resuming fails, rather than passing off an empty session as the old
   * one.
   */
  async #history(): Promise<SessionOrigin> {
    const resumes = this.#hasAnswered || (await this.#services.salvageTranscript(this.#id));
    return resumes ? { kind: 'resume' } : this.origin;
  }
}

/**
 * Claude Code starts counting a budget from zero with each process, although its sum continues. The budget is the
 * session's, so each process gets what is left of it. What is left of a budget is unknown when the cost is.
 */
function withBudgetLeft(options: SessionOptions, spent: Sums, willSpend: boolean): SessionOptions {
  const { maxBudgetUsd } = options;
  if (maxBudgetUsd === undefined) return options;
  const left = roundUsd(maxBudgetUsd - spent.costUsd);
  if (left > 0 && !(spent.costUnknown && willSpend)) return { ...options, maxBudgetUsd: left };
  if (!willSpend) return options;
  const spentUsd = `$${String(roundUsd(spent.costUsd))}`;
  if (left > 0)
    throw new DomainError(
      'PERMISSION_DENIED',
      `The session has a budget of $${String(maxBudgetUsd)} (maxBudgetUsd), and it is unknown what is left of it: Claude Code was killed during a turn, and what that cost beyond ${spentUsd} was never reported (costUnknown). Start a new session and tell it where this one stopped; its work is still there.`,
    );
  throw new DomainError(
    'PERMISSION_DENIED',
    `The session has spent ${spentUsd} of its budget of $${String(maxBudgetUsd)} (maxBudgetUsd). Start a new session, or one with a larger budget if the operator allows it.`,
  );
}
