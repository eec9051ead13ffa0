import { randomUUID } from 'node:crypto';
import { freemem } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { CanUseTool, ClaimOptions, Query, SpareProcess } from '@anthropic-ai/claude-agent-sdk';
import { DomainError, messageOf } from '../errors/errors.ts';
import { AgentChild } from './agent-child.ts';
import { AgentProcess, type AgentLaunch, type AgentListener } from './agent-process.ts';
import { bundledClaudeCode, checkTakesPromptsVerbatim, onlyBundledProgram } from './claude-code-program.ts';
import type { ProcessHome, StartedChild } from '../platform/process-home.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { InputQueue, launchOptions } from './sdk-options.ts';

const NO_CLAUDE_CODE =
  'Claude Code is not installed: this server was installed without the optional package that contains it. Install Claude Code and set its path where the server is configured (CLAUDE_CODE_MCP_EXECUTABLE), or reinstall the server with optional dependencies; then restart it.';

/** A client that only lists the tools has left by then, and a model takes longer to start its first session. */
const PRELOAD_AFTER_MS = 1_000;

/** No executable was configured, and the bundled one is missing. */
function withoutProgram({ options }: AgentLaunch): boolean {
  return (
    options.pathToClaudeCodeExecutable === undefined &&
    bundledClaudeCode(process.platform, process.arch)?.executable === undefined
  );
}

/** Starts Claude Code processes. Loads the SDK for the first one, or earlier when idle. */
export class Driver {
  readonly #owner: ProcessHome;
  #sdk: Promise<typeof import('@anthropic-ai/claude-agent-sdk')> | undefined;
  #keeper: SpareKeeper | undefined;
  #preloading: NodeJS.Timeout | undefined;

  constructor(owner: ProcessHome) {
    this.#owner = owner;
  }

  /** Loads the SDK shortly, unless a session needs it first. */
  preload(debug: (line: string) => void): void {
    this.#preloading ??= setTimeout(() => {
      this.#owner.prepareAhead();
      this.#load().then(onlyBundledProgram, (error: unknown) => debug(`preload: ${String(error)}`));
    }, PRELOAD_AFTER_MS).unref();
  }

  /** From now on one process is kept ready for a session of this kind. */
  keepSpare(template: SpareTemplate, debug: (line: string) => void): void {
    this.#keeper ??= new SpareKeeper({ loadSdk: () => this.#load(), owner: this.#owner, template, debug });
  }

  /** For the next new session to be launched. A spare has its id from the start, so the session uses that one. */
  newSessionId(template: SpareTemplate): string {
    return this.#keeper?.reserve(template) ?? randomUUID();
  }

  /** Continues a process that an earlier server started. It is read from `take` on. */
  async adopt(
    take: () => StartedChild,
    run: string,
    launch: AgentLaunch,
    listener: AgentListener,
  ): Promise<AgentProcess> {
    const sdk = await this.#load();
    const child = AgentChild.adopted(this.#owner, run, take);
    // The transcript of a new session is not fetched from anywhere; what the process was told at its start stays.
    const process = new AgentProcess(sdk, this.#owner, { ...launch, history: { kind: 'new' } }, listener, child);
    if (launch.mirror) await process.spawned;
    return process;
  }

  async launch(launch: AgentLaunch, listener: AgentListener): Promise<AgentProcess> {
    const { pathToClaudeCodeExecutable: program, verbatimPrompts } = launch.options;
    if (verbatimPrompts === true && program !== undefined) await checkTakesPromptsVerbatim(program, launch.env);
    const sdk = await this.#load();
    // A spare was started without a mirror.
    const claimed = launch.mirror ? undefined : await this.#keeper?.claim(launch);
    const child =
      claimed?.child ?? (await AgentChild.prepare(this.#owner, { session: launch.sessionId, rules: launch.rules }));
    try {
      const process = new AgentProcess(sdk, this.#owner, launch, listener, child, claimed);
      if (launch.mirror) await process.spawned;
      return process;
    } catch (error) {
      await child.stop();
      throw withoutProgram(launch) ? new DomainError('INTERNAL', NO_CLAUDE_CODE, { cause: error }) : error;
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#preloading);
    await this.#keeper?.close();
  }

  #load(): Promise<typeof import('@anthropic-ai/claude-agent-sdk')> {
    return (this.#sdk ??= import('@anthropic-ai/claude-agent-sdk'));
  }
}

export interface SpareKeeperOptions {
  readonly loadSdk: () => Promise<typeof import('@anthropic-ai/claude-agent-sdk')>;
  readonly owner: ProcessHome;
  readonly template: SpareTemplate;
  readonly debug: (line: string) => void;
  readonly freeMemory?: () => number;
}

/** A parked spare holds about 250 MB; the session it becomes and its commands need room as well. */
const ENOUGH_FREE_BYTES = 1_000_000_000;
const MEMORY_CHECK_INTERVAL_MS = 30_000;
/** The session that took the last spare is busiest at its start; the next spare must not slow it down. */
const REFILL_AFTER_MS = 1_000;

/** Keeps one spare warm while there is memory for it. A start that cannot use it is unaffected. */
export class SpareKeeper {
  readonly #options: SpareKeeperOptions;
  readonly #freeMemory: () => number;
  readonly #reserved = new Map<string, SpareAgent>();
  readonly #memoryWatch: NodeJS.Timeout;
  #spare: SpareAgent | undefined;
  #warming: Promise<void> | undefined;
  #closed = false;

  constructor(options: SpareKeeperOptions) {
    this.#options = options;
    this.#freeMemory = options.freeMemory ?? freemem;
    this.#memoryWatch = setInterval(() => this.#lookAtMemory(), MEMORY_CHECK_INTERVAL_MS).unref();
    this.#fill();
  }

  /** The id of the session that the spare will become, if it fits; from then on it is reserved for that session. */
  reserve(template: SpareTemplate): string | undefined {
    const spare = this.#spare;
    if (!spare?.fits(template)) return undefined;
    this.#spare = undefined;
    this.#refill();
    if (!spare.alive) return undefined;
    this.#reserved.set(spare.sessionId, spare);
    return spare.sessionId;
  }

  /** Undefined if there is none for this session or it was refused: then a process is started as usual. */
  async claim({ sessionId, history, options }: AgentLaunch): Promise<ClaimedSpare | undefined> {
    const spare = this.#reserved.get(sessionId);
    if (!spare || history.kind !== 'new') return undefined;
    this.#reserved.delete(sessionId);
    try {
      const claimed = await spare.claim(options);
      this.#options.debug('spare claimed');
      return claimed;
    } catch (error) {
      this.#options.debug(`spare refused: ${messageOf(error)}`);
      // Its id is the session's: the replacement may only start when this one is gone.
      await spare.stop();
      return undefined;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#memoryWatch);
    const spares = [...this.#reserved.values(), ...(this.#spare ? [this.#spare] : [])];
    this.#reserved.clear();
    this.#spare = undefined;
    await Promise.all(spares.map((spare) => spare.stop()));
  }

  #refill(): void {
    setTimeout(() => this.#fill(), REFILL_AFTER_MS).unref();
  }

  #fill(): void {
    if (this.#closed || this.#spare || this.#warming || this.#isMemoryShort()) return;
    this.#warming = this.#warm().finally(() => (this.#warming = undefined));
  }

  async #warm(): Promise<void> {
    const { loadSdk, owner, template, debug } = this.#options;
    const spare = new SpareAgent(owner, template);
    try {
      await spare.warm(await loadSdk());
      if (this.#closed) {
        await spare.stop();
        return;
      }
      this.#spare = spare;
      debug('spare is warm');
    } catch (error) {
      debug(`no spare: ${messageOf(error)}`);
      await spare.stop();
    }
  }

  #lookAtMemory(): void {
    if (!this.#isMemoryShort()) {
      this.#fill();
      return;
    }
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare) {
      this.#options.debug('low memory: releasing the spare');
      void spare.stop();
    }
  }

  #isMemoryShort(): boolean {
    return this.#freeMemory() < ENOUGH_FREE_BYTES;
  }
}

type Sdk = typeof import('@anthropic-ai/claude-agent-sdk');

/** What a process is started with, apart from the conversation. */
export interface SpareTemplate {
  readonly options: SessionOptions;
  readonly env: Record<string, string>;
  /** What the operator imposes through Claude Code's policy layer; callers cannot change it. */
  readonly managedSettings?: Readonly<Record<string, unknown>>;
}

/** A spare that has become a session's process. */
export interface ClaimedSpare {
  readonly child: AgentChild;
  readonly input: InputQueue;
  readonly query: Query;
  /** Who to ask was not known when the process was started. */
  askWith(canUseTool: CanUseTool): void;
}

/** What a claim can still set, or what the server keeps for itself; everything else is fixed when the spare starts. */
const SET_BY_CLAIM = new Set([
  'cwd',
  'model',
  'permissionMode',
  'additionalDirectories',
  'permissionRequestTimeoutMs',
  'sessionInitTimeoutMs',
]);

/** A Claude Code process, started and waiting, that is not a session yet. */
class SpareAgent {
  readonly sessionId = randomUUID();
  readonly #template: SpareTemplate;
  readonly #owner: ProcessHome;
  #child: AgentChild | undefined;
  #process: SpareProcess | undefined;
  #canUseTool: CanUseTool | undefined;

  constructor(owner: ProcessHome, template: SpareTemplate) {
    this.#template = template;
    this.#owner = owner;
  }

  async warm(sdk: Sdk): Promise<void> {
    const { options, env, managedSettings } = this.#template;
    const child = await AgentChild.prepare(this.#owner, { session: this.sessionId });
    this.#child = child;
    this.#process = await sdk.prewarm({
      options: {
        ...launchOptions(fixedOptions(options), managedSettings),
        sessionId: this.sessionId,
        env: child.environment(env, this.sessionId),
        spawnClaudeCodeProcess: (spawnOptions) => child.spawn(spawnOptions),
        canUseTool: async (...asked) =>
          this.#canUseTool?.(...asked) ?? {
            behavior: 'deny',
            message: 'The session has not started.',
            interrupt: true,
          },
      },
    });
    // Reported by the claim, if there is one.
    this.#process.claimed.catch(() => undefined);
  }

  get alive(): boolean {
    return this.#process !== undefined && this.#child?.alive === true;
  }

  fits({ options, env, managedSettings }: SpareTemplate): boolean {
    return (
      options.cwd !== undefined &&
      options.permissionMode !== 'bypassPermissions' &&
      isDeepStrictEqual(fixedOptions(options), fixedOptions(this.#template.options)) &&
      isDeepStrictEqual(env, this.#template.env) &&
      isDeepStrictEqual(managedSettings, this.#template.managedSettings)
    );
  }

  /** Resolves when the process has accepted the session; rejects if it will not, and then nothing has run. */
  async claim({ cwd = '', model, permissionMode, additionalDirectories }: SessionOptions): Promise<ClaimedSpare> {
    const child = this.#child;
    if (!this.#process || !child) throw new Error('The spare is not warm.');
    const options: ClaimOptions = {
      cwd,
      ...(model !== undefined && { model }),
      ...(permissionMode !== undefined && { permissionMode }),
      ...(additionalDirectories !== undefined && { additionalDirectories }),
    };
    const input = new InputQueue();
    const query = this.#process.claim({ prompt: input, options });
    await this.#process.claimed;
    return { child, input, query, askWith: (canUseTool) => (this.#canUseTool = canUseTool) };
  }

  async stop(): Promise<void> {
    this.#process?.close();
    await this.#child?.stop();
  }
}

function fixedOptions(options: SessionOptions): SessionOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([name, value]) => value !== undefined && !SET_BY_CLAIM.has(name)),
  );
}
