import type { EventBody, MessageBody } from '../../schema/events.ts';

/** What Claude said in a message, if it said anything. */
export function assistantText(body: EventBody): string | undefined {
  if (body.kind !== 'message' || body.role !== 'assistant') return undefined;
  let said: string | undefined;
  for (const block of body.blocks)
    if (block.kind === 'text') said = said === undefined ? block.text : `${said}\n${block.text}`;
  return said;
}

/** What Claude and its sub-agents said last in this turn, and what Claude is writing. */
export class Speech {
  /** By the call that started the sub-agent; undefined for Claude itself. */
  readonly #last = new Map<string | undefined, string>();
  /** Calls of sub-agents, and the call that started each sub-agent. */
  readonly #startedBy = new Map<string, string>();
  #unfinished = '';

  /** What the agent that makes a call said last. */
  beforeCall({ toolUseId, agentId }: { toolUseId: string; agentId?: string | undefined }): string {
    const agent = this.startOf(toolUseId);
    // Words of one agent must not pass for those of another.
    return agentId !== undefined && agent === undefined ? '' : (this.#last.get(agent) ?? '');
  }

  /** The call that started the sub-agent which made this call. */
  startOf(toolUseId: string): string | undefined {
    return this.#startedBy.get(toolUseId);
  }

  get unfinished(): string {
    return this.#unfinished;
  }

  turnBegins(): void {
    this.#last.clear();
    this.#startedBy.clear();
  }

  turnEnds(): void {
    this.#unfinished = '';
  }

  messageBegins(): void {
    this.#unfinished = '';
  }

  streamed(text: string): void {
    this.#unfinished += text;
  }

  messageEnds(body: MessageBody): void {
    const { parentToolUseId: agent, blocks } = body;
    if (agent === undefined) this.#unfinished = '';
    else for (const block of blocks) if (block.kind === 'tool_call') this.#startedBy.set(block.toolUseId, agent);
    const said = assistantText(body);
    if (said !== undefined) this.#last.set(agent, said);
  }
}
