/** Reads what a tool was called with, which is somebody else's: nothing is taken for granted. */

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
