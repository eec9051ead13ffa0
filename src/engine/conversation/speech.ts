import type { EventBody, MessageBody } from '../../schema/events.ts';

/** What Claude said in a message, if it said anything. */
export function assistantText(body: EventBody): string | undefined {
  if (body.kind !== 'message' || body.role !== 'assistant') return undefined;
  let said: string | undefined;
  for (const block of body.blocks)
    if (block.kind === 'text') said = said === undefined ? block.text : `${said}\n${block.text}`;
  return said;
}

interface Call {
  readonly toolUseId: string;
  readonly agentId?: string | undefined;
}

/** What Claude and its sub-agents said last in this turn, and what Claude is writing. */
export class Speech {
  /** By the call that started the sub-agent; undefined for Claude itself. */
  readonly #last = new Map<string | undefined, string>();
  /** Like the above, but only what was said since a tool last returned something to that agent. */
  readonly #sinceResult = new Map<string | undefined, string>();
  /** Calls of sub-agents, and the call that started each sub-agent. */
  readonly #startedBy = new Map<string, string>();
  #unfinished = '';

  /** What the agent that makes a call said last in this turn. */
  last(call: Call): string {
    return this.#wordsFor(call, this.#last);
  }

  /** What it said about this call: not what it said before another tool returned. */
  aboutCall(call: Call): string {
    return this.#wordsFor(call, this.#sinceResult);
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
    this.#sinceResult.clear();
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
    if (said !== undefined) {
      this.#last.set(agent, said);
      this.#sinceResult.set(agent, said);
    } else if (blocks.some(({ kind }) => kind === 'tool_result')) this.#sinceResult.delete(agent);
  }

  #wordsFor({ toolUseId, agentId }: Call, words: ReadonlyMap<string | undefined, string>): string {
    const agent = this.startOf(toolUseId);
    // Words of one agent must not pass for those of another.
    return agentId !== undefined && agent === undefined ? '' : (words.get(agent) ?? '');
  }
}
