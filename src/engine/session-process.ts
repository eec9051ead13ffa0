import type { AgentExit, AgentListener, AgentProcess } from '../driver/agent-process.ts';
import type { AgentSignal, Translation } from '../driver/agent-signal.ts';
import type { Decision, PermissionAsk } from '../driver/permission-ask.ts';
import { DomainError } from '../errors/errors.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { deferred, type Deferred } from './deferred.ts';
import type { Message, Outbox } from './outbox.ts';
import { settledWithin } from './patience.ts';
import type { SessionOrigin, SessionServices } from './session-types.ts';
import type { Totals } from './totals.ts';

/** What the process needs of its session, and whom it tells what happens to it. */
export interface ProcessHost {
  readonly id: string;
  readonly outbox: Outbox;
  readonly totals: Totals;
  options(): SessionOptions;
  isCancelled(): boolean;
  heard(translation: Translation): void;
  asked(ask: PermissionAsk): Promise<Decision>;
  /** `reported` is false where nobody is left whom the failed launch itself could tell. */
  startFailed(error: unknown, reported: boolean): void;
  /** It has ended by itself. */
  exited(exit: AgentExit): void;
}

/** `first`: with the history the session was made with. `redelivery`: of what a process that died had not read. */
type Occasion = 'first' | 'again' | 'redelivery';

/** The process of a session. One that closes is no longer listened to, but the next may only start when it is gone. */
type Link =
  | { kind: 'none' }
  | { kind: 'live'; process: AgentProcess }
  | { kind: 'closing'; process: AgentProcess; gone: Promise<void> };

/** A session's hold on its process: how it is brought up, and what there is of it now. */
export class SessionProcess {
  readonly #host: ProcessHost;
  readonly #services: SessionServices;
  readonly #origin: SessionOrigin;
  #link: Link = { kind: 'none' };
  /** The report of a start that is awaited. */
  #start: Deferred<void> | undefined;
  #initTimeoutMs: number;
  #hasAnswered = false;
  #reportsState = false;

  constructor(host: ProcessHost, services: SessionServices, origin: SessionOrigin, initTimeoutMs: number) {
    this.#host = host;
    this.#services = services;
    this.#origin = origin;
    this.#initTimeoutMs = initTimeoutMs;
  }

  get live(): AgentProcess | undefined {
    return this.#link.kind === 'live' ? this.#link.process : undefined;
  }

  /** Also of a process that is on its way out. */
  get pid(): number | undefined {
    return this.#link.kind === 'none' ? undefined : this.#link.process.pid;
  }

  /** On its way, without a report of its start. */
  get launching(): boolean {
    return this.#start !== undefined;
  }

  setInitTimeout(ms: number): void {
    this.#initTimeoutMs = ms;
  }

  // ── bringing it up ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Hands a message over. Resolves when a live process has it, or a new one has reported its start. */
  async deliver(message: Message, isFirst: boolean): Promise<void> {
    await this.closed();
    await this.#start?.promise;
    if (this.live) this.live.send(message.text, message.id);
    else await this.#launch(message, isFirst ? 'first' : 'again');
  }

  /** Starts a process that has nothing to do yet. */
  async ready(): Promise<AgentProcess> {
    await this.closed();
    if (!this.live) await this.#launch(undefined, 'again');
    if (this.live) return this.live;
    throw new DomainError('INTERNAL', 'Claude Code could not be started.');
  }

  /** A process that died at rest may be noticed only when it is written to: what it never read goes to the next one. */
  redeliver([first, ...others]: Message[]): boolean {
    if (!first) return false;
    void this.#launch(first, 'redelivery').then(
      () => {
        for (const { id, text } of others) this.live?.send(text, id);
      },
      // The host has been told.
      () => undefined,
    );
    return true;
  }

  /** Claude Code has reported its start. */
  started(): void {
    this.#start?.resolve();
    this.#start = undefined;
  }

  /** It will not come up. */
  failStart(error: DomainError): void {
    this.#start?.reject(error);
  }

  /** Settles when nothing is on its way, however that ended. */
  async startSettled(): Promise<void> {
    await this.#start?.promise.catch(() => undefined);
  }

  async #launch(first: Message | undefined, occasion: Occasion): Promise<void> {
    const start = deferred<void>();
    // Nobody may be listening when it fails: a cancel, a crash during the launch itself.
    start.promise.catch(() => undefined);
    this.#start = start;
    try {
      const { history, process } = await this.#spawn(occasion);
      this.#link = { kind: 'live', process };
      this.#reportsState = false;
      if (!first) return;
      const beginsAgain = occasion !== 'first' && history.kind !== 'resume';
      process.send(beginsAgain ? this.#host.outbox.unanswered : first.text, first.id);
      await this.#startReported(start.promise);
    } catch (error) {
      start.reject(error);
      this.#host.startFailed(error, occasion !== 'redelivery');
      this.close();
      throw error;
    } finally {
      this.#start = undefined;
    }
  }

  async #spawn(occasion: Occasion): Promise<{ history: SessionOrigin; process: AgentProcess }> {
    const { id, totals } = this.#host;
    const history = occasion === 'first' ? this.#origin : await this.#history();
    const counted = history.kind === 'fork' ? history.of : id;
    totals.beginProcess(history.kind === 'new' ? 0 : await this.#services.recordedCostUsd(counted));
    const process = await this.#services.launch(
      { sessionId: id, history, options: this.#host.options() },
      this.#listenerFor(() => process),
    );
    if (!this.#host.isCancelled()) return { history, process };
    await process.stop();
    throw new DomainError('CANCELLED', 'The session was cancelled while it started.');
  }

  /**
   * A process that was killed before it wrote anything left nothing to resume: the session begins again. One that has
   * answered had a transcript; if that is gone now, resuming says so, and nobody takes an empty session for the old one.
   */
  async #history(): Promise<SessionOrigin> {
    const resumes = this.#hasAnswered || (await this.#services.hasTranscript(this.#host.id));
    return resumes ? { kind: 'resume' } : this.#origin;
  }

  async #startReported(reported: Promise<void>): Promise<void> {
    const timeoutMs = this.#initTimeoutMs;
    if (await settledWithin(this.#services.clock, timeoutMs, reported)) return;
    throw new DomainError(
      'TIMEOUT',
      `Claude Code did not report its start within ${String(timeoutMs)} ms. Run \`claude-code-mcp doctor\` to see why, or give it longer if the tool takes a sessionInitTimeoutMs.`,
    );
  }

  // ── what comes from it ─────────────────────────────────────────────────────────────────────────────────────────

  /** Messages of a process that is no longer ours, such as one that dies of a cancel, fall on deaf ears. */
  #listenerFor(process: () => AgentProcess): AgentListener {
    const host = this.#host;
    const current = (): boolean => !host.isCancelled() && this.#mayHear(process);
    return {
      onMessage: (translation) => {
        if (current()) host.heard(translation);
      },
      onRequest: async (ask) => {
        if (current()) return host.asked(ask);
        return { behavior: 'deny', message: 'The session has ended.', interrupt: true };
      },
      onExit: (exit) => {
        if (this.live !== process()) return;
        this.#link = { kind: 'none' };
        host.exited(exit);
      },
    };
  }

  /** Before it is linked it is on its way in. */
  #mayHear(process: () => AgentProcess): boolean {
    return this.#link.kind === 'none' || this.live === process();
  }

  /** Idle is Claude Code's own word; only one that never says it is taken at its first result. */
  restsOn(signal: AgentSignal): boolean {
    if (signal.kind !== 'state') return signal.kind === 'result' && !this.#reportsState;
    this.#reportsState = true;
    return signal.state === 'idle';
  }

  /** There is a transcript now. */
  hasAnswered(): void {
    this.#hasAnswered = true;
  }

  // ── its end ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Begins to end a live process; `closed` tells when it has gone. */
  close(): void {
    const process = this.live;
    if (!process) return;
    const gone = process.stop().then(() => {
      if (this.#link.kind === 'closing' && this.#link.gone === gone) this.#link = { kind: 'none' };
    });
    this.#link = { kind: 'closing', process, gone };
  }

  async closed(): Promise<void> {
    if (this.#link.kind === 'closing') await this.#link.gone;
  }

  /** A process may have died without its end being told yet; what is sent to it would not arrive. */
  async deathTold(): Promise<void> {
    if (!this.launching && this.live && !this.live.alive) await this.live.gone;
  }

  /** One that died meanwhile need not know: the next starts with the new options. */
  async tell(control: (process: AgentProcess) => Promise<void>): Promise<void> {
    const process = this.live;
    if (!process) return;
    await control(process).catch(async (error: unknown) => {
      if (process.alive) throw error;
      await process.gone;
    });
  }
}
