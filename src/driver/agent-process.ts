import type { CanUseTool, Options, PermissionResult, Query, SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { PermissionMode } from '../schema/session-options.ts';
import type { AgentChild } from './agent-child.ts';
import { type Translation, translate } from './translate.ts';
import { InputQueue, launchOptions, mirrorOptions, type TranscriptMirror } from './sdk-options.ts';
import { toAsk, toPermissionResult, type Decision, type PermissionAsk } from './permission-ask.ts';
import type { OutputPosition, ProcessHome } from '../platform/process-home.ts';
import type { ClaimedSpare, SpareTemplate } from './driver.ts';

export interface AgentLaunch extends SpareTemplate {
  sessionId: string;
  history:
    | { kind: 'new' }
    | { kind: 'resume'; at?: string | undefined }
    /** `through`: the last event of the original that the copy continues from. */
    | { kind: 'fork'; of: string; at?: string | undefined; through?: number | undefined };
  /** For a session that another hub takes over when this one goes silent. */
  lease?: LaunchLease | undefined;
  /** For a session that another machine may have to continue. */
  mirror?: TranscriptMirror | undefined;
  /** The operator's rules that it is launched under, for a server that finds the process later. */
  rules?: Readonly<Record<string, unknown>> | undefined;
}

export interface LaunchLease {
  /** Throws if someone else may have the session by now. Called immediately before its process starts. */
  check(): void;
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
  /** The SDK's error message, unless it considers the exit a normal one. */
  error: string | undefined;
  /** What is wrong with an option that it did not start with. */
  refusedOption?: string | undefined;
}

export interface OfferedModel {
  /** As it is asked for. */
  readonly value: string;
  readonly name: string;
  readonly description: string;
}

/** A request, and how it is withdrawn. */
interface Asked {
  readonly withdrawn: AbortController;
  readonly result: Promise<PermissionResult>;
}

type Sdk = typeof import('@anthropic-ai/claude-agent-sdk');
export type RewindReport = Awaited<ReturnType<Query['rewindFiles']>>;

/**
 * How long a process may take to answer a control message. The SDK (0.3.325) waits forever on one that hangs or has
 * died; these can go when its control requests time out on their own.
 */
const INTERRUPT_ANSWER_MS = 3_000;
const CONTROL_ANSWER_MS = 10_000;
const REWIND_ANSWER_MS = 60_000;

/** One long-lived Claude Code process, fed by streaming input. */
export class AgentProcess {
  readonly #listener: AgentListener;
  readonly #child: AgentChild;
  readonly #input: InputQueue;
  readonly #query: Query;
  readonly #mirror: TranscriptMirror | undefined;
  /** Settles when there is a process, or will not be one. */
  readonly spawned: Promise<void>;
  /** Settles when the exit has been reported to the listener. */
  readonly gone: Promise<void>;
  readonly #owner: ProcessHome;
  #stopping: Promise<void> | undefined;
  #ended = false;
  /** By request id, until it is ready: a process that goes on asks again what nobody has read of its output yet. */
  #asked: Map<string, Asked> | undefined = new Map();
  readonly #ready: Promise<ReadonlySet<string>>;

  constructor(
    sdk: Sdk,
    owner: ProcessHome,
    launch: AgentLaunch,
    listener: AgentListener,
    child: AgentChild,
    claimed?: ClaimedSpare,
  ) {
    this.#listener = listener;
    this.#mirror = launch.mirror;
    this.#child = child;
    this.#input = claimed?.input ?? new InputQueue();
    this.#owner = owner;
    if (launch.lease) {
      launch.lease.check();
      this.setLent(true);
    }
    claimed?.askWith(this.#canUseTool);
    this.#query = claimed?.query ?? sdk.query({ prompt: this.#input, options: this.#options(launch) });
    this.#ready = this.#query.initializationResult().then(() => {
      const asked = new Set(this.#asked?.keys());
      this.#asked = undefined;
      return asked;
    });
    this.#ready.catch(() => (this.#asked = undefined));
    this.gone = this.#consume();
    this.spawned = Promise.race([this.#child.spawned, this.gone]);
  }

  /** How much of its output has been dealt with, where another server could read on. */
  get position(): OutputPosition | undefined {
    return this.#child.position;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it accepts messages. An exit is reported to the listener only when the whole process tree is gone. */
  get alive(): boolean {
    return !this.#ended && this.#child.alive;
  }

  /** Whether it must end when this server goes silent, since its session then runs elsewhere. */
  setLent(lent: boolean): void {
    if (lent) this.#owner.lend(this.#child.runId);
    else this.#owner.unlend(this.#child.runId);
  }

  /**
   * Resolves when Claude Code has answered that it is ready, with the ids of the requests that it waits for. The listener
   * may not have them yet: each is passed on once another machine could continue from it.
   */
  ready(): Promise<ReadonlySet<string>> {
    return this.#ready;
  }

  /** The models that Claude Code offers its user. */
  async models(): Promise<OfferedModel[]> {
    const models = await this.#query.supportedModels();
    return models.map(({ value, displayName, description }) => ({ value, name: displayName, description }));
  }

  send(text: string, messageId: string): void {
    this.#input.push(text, messageId);
  }

  /** Takes back a message that waits in Claude Code's queue; false if it is no longer there. */
  async withdraw(messageId: string): Promise<boolean> {
    // The SDK (0.3.325) has this method, and does not declare it.
    const query = this.#query as Query & { cancelAsyncMessage(messageId: string): Promise<boolean> };
    return answered('the withdrawal of a message', CONTROL_ANSWER_MS, query.cancelAsyncMessage(messageId));
  }

  async interrupt(): Promise<void> {
    await answered('an interrupt', INTERRUPT_ANSWER_MS, this.#query.interrupt());
  }

  async setModel(model: string): Promise<void> {
    const changed = this.#query.setModel(model).catch((error: unknown) => {
      throw new DomainError('INVALID_ARGUMENT', `Claude Code does not accept the model ${model}: ${messageOf(error)}`);
    });
    await answered('a change of model', CONTROL_ANSWER_MS, changed);
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await answered('a change of permission mode', CONTROL_ANSWER_MS, this.#query.setPermissionMode(mode));
  }

  /** Replaces the permissions of the settings that it was started with. */
  async setPermissions(permissions: Record<string, unknown>): Promise<void> {
    await answered('a change of rules', CONTROL_ANSWER_MS, this.#query.applyFlagSettings({ permissions }));
  }

  async rewindFiles(toUserMessage: string, dryRun: boolean): Promise<RewindReport> {
    return answered('a rewind', REWIND_ANSWER_MS, this.#query.rewindFiles(toUserMessage, { dryRun }));
  }

  /** Ends the process and everything it started. Idempotent, and safe to call at any time. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    await this.#child.stop();
    this.#input.end();
    this.#query.close();
  }

  #options({ sessionId, history, options, env, managedSettings, lease, mirror }: AgentLaunch): Options {
    const at = history.kind === 'new' ? undefined : history.at;
    const plain: Options = {
      ...launchOptions(options, managedSettings),
      ...(history.kind !== 'resume' && { sessionId }),
      ...(history.kind === 'resume' && { resume: sessionId }),
      ...(history.kind === 'fork' && { resume: history.of, forkSession: true }),
      ...(at !== undefined && { resumeSessionAt: at }),
      env: this.#child.environment(env, sessionId),
      spawnClaudeCodeProcess: (spawnOptions) => {
        // With a mirror the SDK delays the start of a resumed process.
        lease?.check();
        return this.#child.spawn(spawnOptions);
      },
      canUseTool: this.#canUseTool,
    };
    return mirror ? mirrorOptions(mirror, plain) : plain;
  }

  readonly #canUseTool: CanUseTool = (toolName, input, askOptions) => {
    const { requestId, signal } = askOptions;
    const before = this.#asked?.get(requestId);
    const withdrawn = before?.withdrawn ?? new AbortController();
    this.#withdrawWith(signal, withdrawn);
    if (before) return before.result;
    const result = this.#ask(toAsk(toolName, input, { ...askOptions, signal: withdrawn.signal }));
    this.#asked?.set(requestId, { withdrawn, result });
    return result;
  };

  async #ask(ask: PermissionAsk): Promise<PermissionResult> {
    // The question may outlive this process: it is asked once another machine could continue from here.
    await this.#mirror?.holds(ask.toolUseId);
    const decision = await this.#listener.onRequest(ask);
    // The SDK (0.3.325) answers on the process's input; once that is gone the answer would be an unhandled rejection.
    // Can go when it checks first.
    if (this.#ended) return new Promise<never>(() => undefined);
    return toPermissionResult(ask, decision);
  }

  /** The SDK (0.3.325) also aborts questions of a process that died, which has not withdrawn them. */
  #withdrawWith(aborted: AbortSignal, withdrawn: AbortController): void {
    const look = (): void => {
      if (this.#child.isTalking) withdrawn.abort(aborted.reason);
    };
    if (aborted.aborted) look();
    else aborted.addEventListener('abort', look, { once: true });
  }

  /** A result is passed on once another machine could continue from it. */
  async #mirrored(mirror: TranscriptMirror, message: SDKMessage): Promise<void> {
    if (message.type === 'system' && message.subtype === 'mirror_error')
      mirror.gaveUp(message.key.subpath, message.error);
    else if (message.type === 'result') await mirror.settled();
  }

  async #consume(): Promise<void> {
    let error: string | undefined;
    try {
      for await (const message of this.#query) {
        const line = this.#child.takeLine(message);
        if (this.#mirror) await this.#mirrored(this.#mirror, message);
        this.#listener.onMessage(translate(message));
        if (line !== undefined) this.#child.processed(line);
      }
    } catch (thrown) {
      error = messageOf(thrown);
    }
    this.#ended = true;
    const { code, signal } = await this.#child.end();
    await this.stop();
    const { stderr } = this.#child;
    this.#listener.onExit({ code, signal, stderr, error, refusedOption: refusedOption(stderr) });
  }
}

/** Claude Code (2.1.325) checks the schema itself, and says only on stderr that it is none. */
function refusedOption(stderr: string): string | undefined {
  const why = /--json-schema (is not a valid JSON Schema: .+)/.exec(stderr)?.[1];
  return why === undefined ? undefined : `outputFormat.schema ${why}`;
}

async function answered<T>(what: string, withinMs: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const seconds = String(withinMs / 1000);
      reject(
        new DomainError('TIMEOUT', `Claude Code did not respond to ${what} within ${seconds} s; cancel the session.`),
      );
    }, withinMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
