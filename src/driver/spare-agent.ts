import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { CanUseTool, ClaimOptions, Query, SpareProcess } from '@anthropic-ai/claude-agent-sdk';
import type { SessionOptions } from '../schema/session-options.ts';
import { AgentChild } from './agent-child.ts';
import { InputQueue } from './input-queue.ts';
import type { ProcessHome } from '../platform/process-home.ts';
import { launchOptions } from './sdk-options.ts';

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
export class SpareAgent {
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
