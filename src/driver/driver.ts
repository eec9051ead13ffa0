import { randomUUID } from 'node:crypto';
import { DomainError } from '../errors/errors.ts';
import { AgentChild } from './agent-child.ts';
import { AgentProcess, type AgentLaunch, type AgentListener } from './agent-process.ts';
import { bundledClaudeCode, checkTakesPromptsVerbatim, onlyBundledProgram } from './claude-code-program.ts';
import type { ProcessHome, StartedChild } from '../platform/process-home.ts';
import { SpareKeeper, type SpareTemplate } from './spare-agent.ts';

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

  /** Continues a process that an earlier server started. */
  async adopt(started: StartedChild, run: string, launch: AgentLaunch, listener: AgentListener): Promise<AgentProcess> {
    const sdk = await this.#load();
    const child = AgentChild.adopted(this.#owner, run, started);
    // The transcript of a new session is not fetched from anywhere; what the process was told at its start stays.
    return new AgentProcess(sdk, this.#owner, { ...launch, history: { kind: 'new' } }, listener, child);
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
