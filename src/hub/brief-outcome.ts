import { isObject } from '../mcp/arguments.ts';

const MAX_TEXT = 200;
const MAX_FIELDS = 40;

/** The parts of an outcome that are kept when all of it would be too much, in the same shape, with a note. */
export function briefly(outcome: object, bytes: number): object {
  const note = `This was carried out. Its answer had ${String(bytes)} bytes, too many to be kept for a repeat; read the session for its present state.`;
  // The result of a tool has the same object twice, and callers read either.
  const { structuredContent, isError } = outcome as { structuredContent?: unknown; isError?: unknown };
  if (isObject(structuredContent)) {
    const answer = { ...brief(structuredContent), warnings: [note] };
    return {
      content: [{ type: 'text', text: JSON.stringify(answer) }],
      structuredContent: answer,
      ...(isError === true && { isError }),
    };
  }
  const { status, json } = outcome as { status?: unknown; json?: unknown };
  return { ...(typeof status === 'number' && { status }), json: { ...(isObject(json) && brief(json, 2)), note } };
}

/** What identifies things and says how they are: numbers, short texts, and lists without their items. */
function brief(value: Record<string, unknown>, levels = 1): Record<string, unknown> {
  const fields = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    if (name.length > MAX_TEXT) return [];
    if (typeof field === 'number' || typeof field === 'boolean' || field === null) return [[name, field]];
    if (typeof field === 'string') return field.length > MAX_TEXT ? [] : [[name, field]];
    if (Array.isArray(field)) return [[name, []]];
    return levels > 1 && isObject(field) ? [[name, brief(field, levels - 1)]] : [];
  });
  return Object.fromEntries(fields.slice(0, MAX_FIELDS));
}
