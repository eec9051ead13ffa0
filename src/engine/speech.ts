import type { EventBody } from '../schema/events.ts';

/** What Claude said in a message, if it said anything. */
export function assistantText(body: EventBody): string | undefined {
  if (body.kind !== 'message' || body.role !== 'assistant') return undefined;
  const texts = body.blocks.flatMap((block) => (block.kind === 'text' ? block.text : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** What Claude said last in this turn, and what it is writing. */
export class Speech {
  #last = '';
  #unfinished = '';

  get last(): string {
    return this.#last;
  }

  get unfinished(): string {
    return this.#unfinished;
  }

  turnBegins(): void {
    this.#last = '';
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

  messageEnds(body: EventBody): void {
    this.#unfinished = '';
    this.#last = assistantText(body) ?? this.#last;
  }
}
