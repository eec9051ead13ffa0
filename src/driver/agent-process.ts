import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Options, Query, SpawnedProcess, SpawnOptions } from '@anthropic-ai/claude-agent-sdk';
import { messageOf } from '../errors/errors.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import type { Translation } from './agent-signal.ts';
import { InputQueue } from './input-queue.ts';
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

/** One long-lived Claude Code process, fed by streaming input. */
export class AgentProcess {
  readonly runId = randomUUID();
  readonly #owner: ProcessOwner;
  readonly #listener: AgentListener;
  readonly #input = new InputQueue();
  readonly #stderr = new StderrTail();
  readonly #query: Query;
  #child: ChildProcess | undefined;
  #stopping: Promise<void> | undefined;
  #ended = false;

  constructor(sdk: Sdk, owner: ProcessOwner, launch: AgentLaunch, listener: AgentListener) {
    this.#owner = owner;
    this.#listener = listener;
    this.#query = sdk.query({ prompt: this.#input, options: this.#options(launch) });
    void this.#consume();
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  send(text: string, messageId: string): void {
    this.#input.push(text, messageId);
  }

  async interrupt(): Promise<void> {
    await this.#query.interrupt();
  }

  async setModel(model: string): Promise<void> {
    await this.#query.setModel(model);
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await this.#query.setPermissionMode(mode);
  }

  async rewindFiles(toUserMessage: string, dryRun: boolean): Promise<RewindReport> {
    return this.#query.rewindFiles(toUserMessage, { dryRun });
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
    return child;
  }

  async #consume(): Promise<void> {
    let error: string | undefined;
    try {
      for await (const message of this.#query) this.#listener.onMessage(translate(message));
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
