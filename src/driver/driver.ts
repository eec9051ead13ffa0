import { AgentProcess, type AgentLaunch, type AgentListener } from './agent-process.ts';
import type { ProcessOwner } from './process-owner.ts';

/** Starts Claude Code processes. The SDK is loaded with the first of them, or earlier when there is time. */
export class Driver {
  readonly #owner: ProcessOwner;
  #sdk: Promise<typeof import('@anthropic-ai/claude-agent-sdk')> | undefined;

  constructor(owner: ProcessOwner) {
    this.#owner = owner;
  }

  async preload(): Promise<void> {
    await this.#load();
  }

  async launch(launch: AgentLaunch, listener: AgentListener): Promise<AgentProcess> {
    return new AgentProcess(await this.#load(), this.#owner, launch, listener);
  }

  #load(): Promise<typeof import('@anthropic-ai/claude-agent-sdk')> {
    return (this.#sdk ??= import('@anthropic-ai/claude-agent-sdk'));
  }
}
