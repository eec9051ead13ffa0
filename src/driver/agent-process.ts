import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Options, Query, SDKMessage, SpawnedProcess, SpawnOptions } from '@anthropic-ai/claude-agent-sdk';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import type { Translation } from './agent-signal.ts';
import { InputQueue } from './input-queue.ts';
import { ObjectLines } from './object-lines.ts';
import { toAsk, toPermissionResult, type Decision, type PermissionAsk } from './permission-ask.ts';
import type { ProcessOwner } from './process-owner.ts';
import { sdkOptions } from './sdk-options.ts';
import { StderrTail } from './stderr-tail.ts';
import { translate } from './translate.ts';

export interface AgentLaunch {
  sessionId: string;
  history:
    | { kind: 'new' }
    | { kind: 'resume'; at?: string | undefined }
    | { kind: 'fork'; of: string; at?: string | undefined };
  options: SessionOptions;
  env: Record<string, string>;
}

export interface AgentListener {
  onMessage(translation: Translation): void;
  onRequest(ask: PermissionAsk): Promise<Decision>;
  /** Called once, when the process and its message stream have both ended. */
  onExit(exit: AgentExit): void;
}

export interface AgentExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
  /** What the SDK said about the end, if it did not take it for a normal one. */
  error: string | undefined;
}

type Sdk = typeof import('@anthropic-ai/claude-agent-sdk');
export type RewindReport = Awaited<ReturnType<Query['rewindFiles']>>;

/** How long a process may take to end after its message stream did, before it is ended. */
const EXIT_GRACE_MS = 2_000;
/** How long a process may take to answer a control message: the SDK itself would wait for ever. */
const INTERRUPT_ANSWER_MS = 3_000;
const CONTROL_ANSWER_MS = 10_000;
const REWIND_ANSWER_MS = 60_000;

/** One long-lived Claude Code process, fed by streaming input. */
export class AgentProcess {
  readonly runId = randomUUID();
  readonly #owner: ProcessOwner;
  readonly #listener: AgentListener;
  readonly #input = new InputQueue();
  readonly #stderr = new StderrTail();
  readonly #query: Query;
  #child: ChildProcess | undefined;
  /** Settles when the listener has been told of the end. */
  readonly gone: Promise<void>;
  #stopping: Promise<void> | undefined;
  #ended = false;

  constructor(sdk: Sdk, owner: ProcessOwner, launch: AgentLaunch, listener: AgentListener) {
    this.#owner = owner;
    this.#listener = listener;
    this.#query = sdk.query({ prompt: this.#input, options: this.#options(launch) });
    this.gone = this.#consume();
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Takes messages. One that has died is told to the listener only when its whole tree is gone. */
  get alive(): boolean {
    return !this.#ended && this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  send(text: string, messageId: string): void {
    this.#input.push(text, messageId);
  }

  async interrupt(): Promise<void> {
    await answered('an interrupt', INTERRUPT_ANSWER_MS, this.#query.interrupt());
  }

  async setModel(model: string): Promise<void> {
    await answered('a change of model', CONTROL_ANSWER_MS, this.#query.setModel(model));
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await answered('a change of permission mode', CONTROL_ANSWER_MS, this.#query.setPermissionMode(mode));
  }

  async rewindFiles(toUserMessage: string, dryRun: boolean): Promise<RewindReport> {
    return answered('a rewind', REWIND_ANSWER_MS, this.#query.rewindFiles(toUserMessage, { dryRun }));
  }

  /** Ends the process and everything it started. Safe to call at any time and more than once. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    await this.#owner.stopRun(this.runId, this.#child?.pid);
    this.#input.end();
    this.#query.close();
  }

  #options({ sessionId, history, options, env }: AgentLaunch): Options {
    const at = history.kind === 'new' ? undefined : history.at;
    return {
      ...sdkOptions(options),
      ...(history.kind !== 'resume' && { sessionId }),
      ...(history.kind === 'resume' && { resume: sessionId }),
      ...(history.kind === 'fork' && { resume: history.of, forkSession: true }),
      ...(at !== undefined && { resumeSessionAt: at }),
      env: {
        ...env,
        ...this.#owner.adopt(this.runId),
        // The only authoritative word on when Claude Code has come to rest.
        CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
      },
      spawnClaudeCodeProcess: (spawnOptions) => this.#spawn(spawnOptions),
      canUseTool: async (toolName, input, askOptions) => {
        const ask = toAsk(toolName, input, askOptions);
        const decision = await this.#listener.onRequest(ask);
        // The SDK answers on the process's input; once that is gone the answer would be an unhandled rejection.
        if (this.#ended) return new Promise<never>(() => undefined);
        return toPermissionResult(ask, decision);
      },
    };
  }

  #spawn({ command, args, cwd, env }: SpawnOptions): SpawnedProcess {
    const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr.add(chunk);
    });
    // A process that dies while it is written to; the end of the process itself is reported by its exit.
    child.stdin.on('error', () => undefined);
    child.on('error', (error) => {
      this.#stderr.add(error.message);
    });
    // The SDK waits for the exit of a process that will never say anything again.
    child.stdout.once('end', () => {
      setTimeout(() => void this.stop(), EXIT_GRACE_MS).unref();
    });
    return filtered(child, (text) => this.#stderr.add(text));
  }

  async #consume(): Promise<void> {
    let error: string | undefined;
    try {
      for await (const message of this.#query) this.#listener.onMessage(translated(message));
    } catch (thrown) {
      error = messageOf(thrown);
    }
    this.#ended = true;
    const { code, signal } = await this.#childEnd();
    this.#listener.onExit({ code, signal, stderr: this.#stderr.lines(), error });
  }

  /** The SDK's stream can end before the process has; then the tree is ended too, so that a dead session holds nothing. */
  async #childEnd(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const child = this.#child;
    if (!child) return { code: null, signal: null };
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const patience = AbortSignal.timeout(EXIT_GRACE_MS);
      await once(child, 'exit', { signal: patience }).catch(() => undefined);
    }
    await this.stop();
    return { code: child.exitCode, signal: child.signalCode };
  }
}

/** A message of another version may lack what ours has: then it is kept as it is and means nothing. */
function translated(message: SDKMessage): Translation {
  try {
    return translate(message);
  } catch {
    return { event: { type: 'progress', data: message }, signals: [] };
  }
}

async function answered<T>(what: string, withinMs: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const seconds = String(withinMs / 1000);
      reject(
        new DomainError('TIMEOUT', `Claude Code did not react to ${what} within ${seconds} s; cancel the session.`),
      );
    }, withinMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The process as the SDK sees it, with nothing on its output but objects. */
function filtered(child: ChildProcessWithoutNullStreams, stray: (text: string) => void): SpawnedProcess {
  const stdout = child.stdout.pipe(new ObjectLines(stray));
  return new Proxy<SpawnedProcess>(child, {
    get(_child, name) {
      if (name === 'stdout') return stdout;
      const value: unknown = Reflect.get(child, name);
      return typeof value === 'function' ? (value.bind(child) as unknown) : value;
    },
  });
}
