/** JSON as people write it: with comments and trailing commas, read together with the place of everything in the text. */

export type JsonNode =
  | { readonly kind: 'object'; readonly start: number; readonly end: number; readonly members: readonly JsonMember[] }
  | { readonly kind: 'array'; readonly start: number; readonly end: number; readonly items: readonly JsonNode[] }
  | { readonly kind: 'scalar'; readonly start: number; readonly end: number; readonly value: unknown };

export interface JsonMember {
  readonly key: string;
  readonly start: number;
  readonly value: JsonNode;
  /** Where the comma behind the value stands. */
  readonly comma: number | undefined;
}

export class JsonTextError extends Error {
  override readonly name = 'JsonTextError';
}

export function parseJsonText(text: string): JsonNode {
  const reader = new Reader(text);
  const root = reader.value();
  reader.expectEnd();
  return root;
}

export function valueOf(node: JsonNode): unknown {
  switch (node.kind) {
    case 'scalar':
      return node.value;
    case 'array':
      return node.items.map(valueOf);
    case 'object':
      return Object.fromEntries(node.members.map(({ key, value }) => [key, valueOf(value)]));
  }
}

const BLANK = /(?:[\s\uFEFF]|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
const WORD = /-?\d[\d.eE+-]*|true|false|null/y;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): JsonNode {
    this.#skipBlank();
    const start = this.#at;
    if (this.#take('{')) return this.#object(start);
    if (this.#take('[')) return this.#array(start);
    return { kind: 'scalar', start, value: this.#scalar(), end: this.#at };
  }

  expectEnd(): void {
    this.#skipBlank();
    if (this.#at < this.#text.length) throw this.#unexpected();
  }

  #object(start: number): JsonNode {
    const members: JsonMember[] = [];
    for (;;) {
      this.#skipBlank();
      if (this.#take('}')) return { kind: 'object', start, end: this.#at, members };
      if (members.length > 0 && members.at(-1)?.comma === undefined) throw this.#unexpected();
      const memberStart = this.#at;
      const key = this.#string();
      this.#skipBlank();
      if (!this.#take(':')) throw this.#unexpected();
      const value = this.value();
      members.push({ key, start: memberStart, value, comma: this.#comma() });
    }
  }

  #array(start: number): JsonNode {
    const items: JsonNode[] = [];
    for (let open = true; ;) {
      this.#skipBlank();
      if (this.#take(']')) return { kind: 'array', start, end: this.#at, items };
      if (!open) throw this.#unexpected();
      items.push(this.value());
      open = this.#comma() !== undefined;
    }
  }

  #comma(): number | undefined {
    this.#skipBlank();
    return this.#take(',') ? this.#at - 1 : undefined;
  }

  #scalar(): unknown {
    if (this.#text[this.#at] === '"') return this.#string();
    return this.#parse(this.#match(WORD));
  }

  #string(): string {
    return this.#parse(this.#match(STRING)) as string;
  }

  #parse(written: string): unknown {
    try {
      return JSON.parse(written);
    } catch {
      throw this.#unexpected();
    }
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found === undefined) throw this.#unexpected();
    this.#at += found.length;
    return found;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #skipBlank(): void {
    BLANK.lastIndex = this.#at;
    this.#at += BLANK.exec(this.#text)?.[0].length ?? 0;
  }

  #unexpected(): JsonTextError {
    const before = this.#text.slice(0, this.#at).split('\n');
    const what = this.#at < this.#text.length ? JSON.stringify(this.#text[this.#at]) : 'the end';
    return new JsonTextError(
      `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: did not expect ${what}`,
    );
  }
}
