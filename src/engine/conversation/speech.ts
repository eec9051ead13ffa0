import type { EventBody, MessageBody } from '../../schema/events.ts';

/** What Claude said in a message, if it said anything. */
export function assistantText(body: EventBody): string | undefined {
  if (body.kind !== 'message' || body.role !== 'assistant') return undefined;
  let said: string | undefined;
  for (const block of body.blocks)
    if (block.kind === 'text') said = said === undefined ? block.text : `${said}\n${block.text}`;
  return said;
}

export function isPlan(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
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
  /** By call. Claude Code drops a plan that is an argument of the call, and asks with the plan file's, if there is one. */
  readonly #plans = new Map<string, string>();
  #unfinished = '';

  /** The plan it presents with this call, or else what it said last in this turn. */
  plan(call: Call): string {
    return this.#plans.get(call.toolUseId) ?? this.#wordsFor(call, this.#last);
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
    this.#plans.clear();
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
    for (const block of blocks) {
      if (block.kind !== 'tool_call') continue;
      const { toolUseId, toolName, input } = block;
      if (agent !== undefined) this.#startedBy.set(toolUseId, agent);
      if (toolName === 'ExitPlanMode' && isPlan(input['plan'])) this.#plans.set(toolUseId, input['plan']);
    }
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
