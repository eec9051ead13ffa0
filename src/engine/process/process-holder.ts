import type { AgentExit, AgentListener, AgentProcess } from '../../driver/agent-process.ts';
import type { Translation } from '../../driver/translate.ts';
import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import { type Clock, deferred, type Deferred, settledWithin } from '../clock.ts';
import type { Message } from '../conversation/outbox.ts';
import { describeExit } from '../conversation/turn-result.ts';

/** Receives what a process says and asks, and its exit if it exits on its own after its start was reported. */
export interface ProcessListener {
  onMessage(translation: Translation): void;
  onRequest(ask: PermissionAsk): Promise<Decision>;
  onExit(exit: AgentExit): void;
  /** Resolves when a process that has just been launched may be given its message. */
  beforeMessage?(): Promise<void>;
}

export interface Launched {
  readonly process: AgentProcess;
  /** Claude Code reports its start only when it has something to do; without a message the start ends here. */
  readonly first: Message | undefined;
}

export interface ProcessStart {
  readonly launch: (listener: AgentListener) => Promise<Launched>;
  readonly timeoutMs: number;
}

interface Start {
  readonly reported: Deferred<void>;
  /** Settles when nothing is in progress any more. */
  readonly ended: Deferred<void>;
  process: AgentProcess | undefined;
  hasReported: boolean;
  /** What Claude Code itself reported as wrong: more useful than its exit code. */
  complaint: string | undefined;
  /** Why the start is no longer wanted. */
  aborted: DomainError | undefined;
}

type Holding =
  | { kind: 'none' }
  | { kind: 'starting'; start: Start }
  | { kind: 'live'; process: AgentProcess }
  | { kind: 'closing'; process: AgentProcess; gone: Promise<void> };

/**
 * Holds at most one Claude Code process: starts it, passes on what it says, ends it. The next process starts only when
 * the previous one is gone, and a closing process is no longer listened to.
 */
export class ProcessHolder {
  readonly #clock: Clock;
  readonly #listener: ProcessListener;
  #holding: Holding = { kind: 'none' };

  constructor(clock: Clock, listener: ProcessListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** A process that accepts messages, even if it has not reported its start yet. */
  get live(): AgentProcess | undefined {
    if (this.#holding.kind === 'live') return this.#holding.process;
    return this.#holding.kind === 'starting' ? this.#holding.start.process : undefined;
  }

  /** Launched, but it has not reported its start yet. */
  get starting(): boolean {
    return this.#holding.kind === 'starting';
  }

  /** Being closed; `closed` resolves when it is gone. */
  get closing(): boolean {
    return (
      this.#holding.kind === 'closing' ||
      (this.#holding.kind === 'starting' && this.#holding.start.aborted !== undefined)
    );
  }

  /** Includes a process that is being closed. */
  get pid(): number | undefined {
    return this.#holding.kind === 'closing' ? this.#holding.process.pid : this.live?.pid;
  }

  /** Resolves when no process is starting or closing; rejects if the start it waited for fails. */
  async settled(): Promise<void> {
    while (this.#holding.kind === 'starting' || this.#holding.kind === 'closing') {
      if (this.#holding.kind === 'starting') await this.#holding.start.reported.promise;
      else await this.#holding.gone;
    }
  }

  /** Resolves when a process that is being closed, or whose start was aborted, has gone. */
  async closed(): Promise<void> {
    if (this.#holding.kind === 'starting' && this.#holding.start.aborted) await this.#holding.start.ended.promise;
    if (this.#holding.kind === 'closing') await this.#holding.gone;
  }

  /** Resolves when no start is in progress, however it ended. */
  async startSettled(): Promise<void> {
    if (this.#holding.kind === 'starting') await this.#holding.start.reported.promise.catch(() => undefined);
  }

  /**
   * Starts a process and gives it its first message. Resolves when Claude Code has reported its start. Call it only
   * when there is none (`settled`); it reserves the slot before it awaits anything.
   */
  async start({ launch, timeoutMs }: ProcessStart): Promise<void> {
    if (this.#holding.kind !== 'none') throw new DomainError('INTERNAL', 'The session already has a process.');
    const start: Start = {
      reported: deferred(),
      ended: deferred(),
      process: undefined,
      hasReported: false,
      complaint: undefined,
      aborted: undefined,
    };
    // There may be no one waiting when it fails: a cancel, or a crash during the launch itself.
    start.reported.promise.catch(() => undefined);
    this.#holding = { kind: 'starting', start };
    try {
      const { process, first } = await launch(this.#agentListener(start));
      start.process = process;
      if (first) await this.#listener.beforeMessage?.();
      if (start.aborted) throw start.aborted;
      if (first) {
        process.send(first.text, first.id);
        await this.#startReported(start, timeoutMs);
      }
      this.#reported(start);
    } catch (error) {
      this.#giveUp(start);
      start.reported.reject(error);
      throw error;
    } finally {
      start.ended.resolve();
    }
  }

  /** Continues a process that runs already. Call it only when there is none. */
  async adopt(attach: (listener: AgentListener) => Promise<AgentProcess>): Promise<AgentProcess> {
    if (this.#holding.kind !== 'none') throw new DomainError('INTERNAL', 'The session already has a process.');
    const start: Start = {
      reported: deferred(),
      ended: deferred(),
      process: undefined,
      hasReported: true,
      complaint: undefined,
      aborted: undefined,
    };
    start.reported.promise.catch(() => undefined);
    this.#holding = { kind: 'starting', start };
    try {
      const process = await attach(this.#agentListener(start, 'adopted'));
      start.process = process;
      if (start.aborted) throw start.aborted;
      this.#reported(start);
      return process;
    } catch (error) {
      this.#giveUp(start);
      throw error;
    } finally {
      start.ended.resolve();
    }
  }

  /** Makes a start in progress fail with this error as soon as possible; of several the first counts. */
  abortStart(error: DomainError): void {
    if (this.#holding.kind !== 'starting' || this.#holding.start.aborted) return;
    this.#holding.start.aborted = error;
    this.#holding.start.reported.reject(error);
  }

  send({ id, text }: Message): void {
    this.live?.send(text, id);
  }

  /** Sends a control message to a live process. If it has died in the meantime, that is fine: the next one starts with the new options. */
  async control(tell: (process: AgentProcess) => Promise<void>): Promise<void> {
    const process = this.live;
    if (!process) return;
    await tell(process).catch(async (error: unknown) => {
      if (process.alive) throw error;
      await process.gone;
    });
  }

  /** A process may have died without its exit being reported yet; anything sent to it would be lost. */
  async exitReported(): Promise<void> {
    if (this.#holding.kind === 'live' && !this.#holding.process.alive) await this.#holding.process.gone;
  }

  /** Starts closing a live process; `closed` resolves when it is gone. */
  close(): void {
    const process = this.live;
    if (!process) return;
    const gone = process.stop().then(() => {
      if (this.#holding.kind === 'closing' && this.#holding.gone === gone) this.#holding = { kind: 'none' };
    });
    this.#holding = { kind: 'closing', process, gone };
  }

  /** From here on its exit is reported. It may have exited, or been closed, in the same tick. */
  #reported(start: Start): void {
    start.hasReported = true;
    if (start.process && this.#isStarting(start)) this.#holding = { kind: 'live', process: start.process };
    start.reported.resolve();
  }

  #isStarting(start: Start): boolean {
    return this.#holding.kind === 'starting' && this.#holding.start === start;
  }

  #giveUp(start: Start): void {
    if (!this.#isStarting(start)) return;
    if (start.process) this.close();
    else this.#holding = { kind: 'none' };
  }

  async #startReported({ reported }: Start, timeoutMs: number): Promise<void> {
    if (await settledWithin(this.#clock, timeoutMs, reported.promise)) return;
    throw new DomainError(
      'TIMEOUT',
      `Claude Code did not report its start within ${String(timeoutMs)} ms. Run \`claude-code-mcp doctor\` to see why, or raise the timeout: sessionInitTimeoutMs if the tool accepts it, or CLAUDE_CODE_MCP_START_TIMEOUT_MS where the server is started.`,
    );
  }

  /** Ignores whatever comes from a process that is no longer held, such as one that was cancelled. */
  #agentListener(start: Start, process: 'new' | 'adopted' = 'new'): AgentListener {
    const idle = new IdleReports(process === 'adopted');
    return {
      onMessage: (translation) => {
        if (!this.#holds(start)) return;
        if (!start.hasReported) this.#noteStart(start, translation);
        const complete = idle.completed(translation);
        this.#listener.onMessage(start.hasReported ? complete : withoutIdle(complete));
      },
      onRequest: async (ask) => {
        if (this.#holds(start)) return this.#listener.onRequest(ask);
        return { behavior: 'deny', message: 'The session has ended.', interrupt: true };
      },
      onExit: (exit) => {
        if (!this.#holds(start)) return;
        this.#holding = { kind: 'none' };
        if (start.hasReported) return this.#listener.onExit(exit);
        start.reported.reject(notStarted(start, exit));
      },
    };
  }

  /** Whether the process of this start is the one that is held. */
  #holds(start: Start): boolean {
    if (start.aborted) return false;
    if (this.#holding.kind === 'live') return this.#holding.process === start.process;
    return this.#isStarting(start);
  }

  /** A successful result is as good as a report; a failed one explains why there will be none. */
  #noteStart(start: Start, { event }: Translation): void {
    const body = event?.body;
    if (body?.kind === 'result' && body.result.isError) start.complaint = body.result.text;
    else if (body?.kind === 'init' || body?.kind === 'result') this.#reported(start);
  }
}

function notStarted({ complaint }: Start, exit: AgentExit): DomainError {
  if (exit.refusedOption !== undefined) return new DomainError('INVALID_ARGUMENT', exit.refusedOption);
  return new DomainError('INTERNAL', `Claude Code did not start: ${complaint ?? describeExit(exit)}`);
}

/** A process that cannot even start (for example, with no transcript to resume) reports idle too: wait for its exit. */
function withoutIdle(translation: Translation): Translation {
  const signals = translation.signals.filter((signal) => signal.kind !== 'state' || signal.state !== 'idle');
  return { ...translation, signals };
}

/** Claude Code reports when it is idle; a version that never does is assumed to be idle after each result. */
class IdleReports {
  #reportsIdle: boolean;

  /** `reportsIdle`: it has done so before. */
  constructor(reportsIdle: boolean) {
    this.#reportsIdle = reportsIdle;
  }

  completed(translation: Translation): Translation {
    if (this.#reportsIdle) return translation;
    const { event, signals } = translation;
    this.#reportsIdle = signals.some(({ kind }) => kind === 'state');
    if (this.#reportsIdle || event?.body.kind !== 'result') return translation;
    return { ...translation, signals: [...signals, { kind: 'state', state: 'idle' }] };
  }
}
