import { randomUUID } from 'node:crypto';
import { AgentProcess, type AgentLaunch, type AgentListener } from './agent-process.ts';
import type { ProcessOwner } from './process-owner.ts';
import type { SpareTemplate } from './spare-agent.ts';
import { SpareKeeper } from './spare-keeper.ts';

/** Starts Claude Code processes. The SDK is loaded with the first of them, or earlier when there is time. */
export class Driver {
  readonly #owner: ProcessOwner;
  #sdk: Promise<typeof import('@anthropic-ai/claude-agent-sdk')> | undefined;
  #keeper: SpareKeeper | undefined;

  constructor(owner: ProcessOwner) {
    this.#owner = owner;
  }

  async preload(): Promise<void> {
    await this.#load();
  }

  /** From now on one process is kept ready for a session of this kind. */
  keepSpare(template: SpareTemplate, debug: (line: string) => void): void {
    this.#keeper ??= new SpareKeeper({ loadSdk: () => this.#load(), owner: this.#owner, template, debug });
  }

  /** For a new session that is launched next. A spare has its id from its start, so the session takes that one. */
  newSessionId(template: SpareTemplate): string {
    return this.#keeper?.reserve(template) ?? randomUUID();
  }

  async launch(launch: AgentLaunch, listener: AgentListener): Promise<AgentProcess> {
    const sdk = await this.#load();
    return new AgentProcess(sdk, this.#owner, launch, listener, await this.#keeper?.claim(launch));
  }

  async close(): Promise<void> {
    await this.#keeper?.close();
  }

  #load(): Promise<typeof import('@anthropic-ai/claude-agent-sdk')> {
    return (this.#sdk ??= import('@anthropic-ai/claude-agent-sdk'));
  }
}
