import type { EventBody } from '../../schema/events.ts';

/** What Claude said in a message, if it said anything. */
export function assistantText(body: EventBody): string | undefined {
  if (body.kind !== 'message' || body.role !== 'assistant') return undefined;
  let said: string | undefined;
  for (const block of body.blocks)
    if (block.kind === 'text') said = said === undefined ? block.text : `${said}\n${block.text}`;
  return said;
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
