/** Changes one member of a JSON text and leaves every other character as it is, comments among them. */

import { JsonTextError, parseJsonText, valueOf, type JsonMember, type JsonNode } from './json-text.ts';

type JsonObject = Extract<JsonNode, { kind: 'object' }>;

export function readMember(text: string, path: readonly string[]): unknown {
  let node: JsonNode | undefined = isBlank(text) ? undefined : parseJsonText(text);
  for (const key of path) node = node?.kind === 'object' ? memberOf(node, key)?.value : undefined;
  return node && valueOf(node);
}

/** Objects that the path needs and that are not there yet are made. */
export function setMember(text: string, path: readonly string[], value: unknown): string {
  if (isBlank(text)) return `${JSON.stringify(nest(path, value), null, 2)}\n`;
  let node = asObject(parseJsonText(text), 'the file');
  for (const [depth, key] of path.entries()) {
    const member = memberOf(node, key);
    const rest = path.slice(depth + 1);
    if (member === undefined) return insert(text, node, key, nest(rest, value));
    if (rest.length === 0) return replace(text, member, value);
    node = asObject(member.value, key);
  }
  return text;
}

/** The inverse of `setMember` where it added a member. */
export function removeMember(text: string, path: readonly string[]): string {
  let node = asObject(parseJsonText(text), 'the file');
  for (const key of path.slice(0, -1)) {
    const member = memberOf(node, key);
    if (member === undefined) return text;
    node = asObject(member.value, key);
  }
  const index = node.members.findIndex(({ key }) => key === path.at(-1));
  const member = node.members[index];
  if (member === undefined) return text;
  const from = endOfText(text, member.start);
  const to = member.comma === undefined ? member.value.end : member.comma + 1;
  const without = text.slice(0, from) + text.slice(to);
  if (node.members.length === 1 && isBlank(without.slice(node.start + 1, node.end - 1 - (to - from)))) {
    return `${text.slice(0, node.start)}{}${text.slice(node.end)}`;
  }
  // The last one takes the comma of the one before it along, or the text would no longer be plain JSON.
  const danglingComma = member.comma === undefined ? node.members[index - 1]?.comma : undefined;
  return danglingComma === undefined ? without : without.slice(0, danglingComma) + without.slice(danglingComma + 1);
}

function insert(text: string, into: JsonObject, key: string, value: unknown): string {
  const layout = layoutOf(text);
  const last = into.members.at(-1);
  const closing = indentAt(text, into.start);
  const indent = (last && ownLineIndent(text, last.start)) ?? closing + layout.unit;
  const line = layout.eol + indent + render(key, value, indent, layout);
  const trailingComma = last?.comma !== undefined;
  const end = endOfText(text, into.end - 1);
  const head =
    last && !trailingComma ? `${text.slice(0, last.value.end)},${text.slice(last.value.end, end)}` : text.slice(0, end);
  const tail =
    last && ownLineIndent(text, into.end - 1) !== undefined
      ? text.slice(end)
      : layout.eol + closing + text.slice(into.end - 1);
  return head + line + (trailingComma ? ',' : '') + tail;
}

function replace(text: string, { key, start, value: { end } }: JsonMember, value: unknown): string {
  return text.slice(0, start) + render(key, value, indentAt(text, start), layoutOf(text)) + text.slice(end);
}

interface Layout {
  readonly unit: string;
  readonly eol: string;
}

function layoutOf(text: string): Layout {
  return { unit: /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ', eol: text.includes('\r\n') ? '\r\n' : '\n' };
}

function render(key: string, value: unknown, indent: string, { unit, eol }: Layout): string {
  return `${JSON.stringify(key)}: ${JSON.stringify(value, null, unit).replaceAll('\n', eol + indent)}`;
}

/** The indent of the line on which a place lies. */
function indentAt(text: string, at: number): string {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, at))?.[0] ?? '';
}

/** Undefined when something else stands before it on its line. */
function ownLineIndent(text: string, at: number): string | undefined {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  const before = text.slice(lineStart, at);
  return lineStart > 0 && before.trim() === '' ? before : undefined;
}

/** Where what stands before a place ends, blanks left out. */
function endOfText(text: string, at: number): number {
  return text.slice(0, at).trimEnd().length;
}

function memberOf(node: JsonObject, key: string): JsonMember | undefined {
  return node.members.findLast((member) => member.key === key);
}

function asObject(node: JsonNode, what: string): JsonObject {
  if (node.kind === 'object') return node;
  throw new JsonTextError(`${what} is not an object`);
}

function nest(path: readonly string[], value: unknown): unknown {
  return path.reduceRight((inner, key) => ({ [key]: inner }), value);
}

function isBlank(text: string): boolean {
  return text.replace('\uFEFF', '').trim() === '';
}
