/** Reads the loosely typed JSON of a request's body. */

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function fieldsList(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The texts of a message, a tool result or a system prompt: each may be a string or a list of blocks. */
export function textBlocks(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return blocksOfType(content, 'text').map((block) => stringOf(block['text']));
}

export function blocksOfType(content: unknown, type: string): Fields[] {
  return fieldsList(content).filter((block) => block['type'] === type);
}
