import type { EventReader } from '../engine/conversation/reading.ts';
import type { EventBody, MessageBlock, SessionEvent, ToolCallBlock } from '../schema/events.ts';

/**
 * Results do not say which tool they belong to. Calls come before their results, mostly right before: the reader of
 * some events adds those it passes, and earlier calls are searched for backwards, no further than necessary.
 */
export class ToolNames {
  readonly #names = new Map<string, string>();
  readonly #earlier: Iterator<SessionEvent>;

  /** `first`: the event that the reader starts with. */
  constructor(log: EventReader, first: number) {
    this.#earlier = log.newestFirst(first)[Symbol.iterator]();
  }

  add({ toolUseId, toolName }: Pick<ToolCallBlock, 'toolUseId' | 'toolName'>): void {
    this.#names.set(toolUseId, toolName);
  }

  of(toolUseId: string): string | undefined {
    while (!this.#names.has(toolUseId)) {
      const next = this.#earlier.next();
      if (next.done === true) return undefined;
      for (const block of blocksOf(next.value.body)) if (block.kind === 'tool_call') this.add(block);
    }
    return this.#names.get(toolUseId);
  }
}

export function blocksOf(body: EventBody): readonly MessageBlock[] {
  return body.kind === 'message' ? body.blocks : [];
}
