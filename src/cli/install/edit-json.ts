/**
 * Edits one member of a JSON text with comments and leaves every other character alone. `jsonc-parser` finds the places.
 * Its `modify` would reformat the lines around an edit and drop the comments beside a removed member.
 */

import { applyEdits, createScanner, parse, parseTree, printParseErrorCode } from 'jsonc-parser';
import type { Edit, Node, ParseError } from 'jsonc-parser';

export class JsonTextError extends Error {
  override readonly name = 'JsonTextError';
}

export function readMember(text: string, path: readonly string[]): unknown {
  let node: Node | undefined = isBlank(text) ? undefined : parseText(text);
  for (const key of path) node = node && valueOf(memberOf(node, key));
  return node && parse(text.slice(node.offset, endOf(node)), [], { allowTrailingComma: true });
}

/** Creates the objects on the path that do not exist yet. */
export function setMember(text: string, path: readonly string[], value: unknown): string {
  if (isBlank(text)) return `${JSON.stringify(nest(path, value), null, 2)}\n`;
  let object = asObject(parseText(text), 'the file');
  for (const [depth, key] of path.entries()) {
    const member = memberOf(object, key);
    const rest = path.slice(depth + 1);
    if (member === undefined) return applyEdits(text, insertion(text, object, key, nest(rest, value)));
    if (rest.length === 0) return applyEdits(text, [replacement(text, member, key, value)]);
    object = asObject(valueOf(member), key);
  }
  return text;
}

/** Undoes a `setMember` that added a member. */
export function removeMember(text: string, path: readonly string[]): string {
  let object = asObject(parseText(text), 'the file');
  for (const key of path.slice(0, -1)) {
    const member = memberOf(object, key);
    if (member === undefined) return text;
    object = asObject(valueOf(member), key);
  }
  const members = object.children ?? [];
  const member = memberOf(object, path.at(-1) ?? '');
  return member ? applyEdits(text, removal(text, object, members, members.indexOf(member))) : text;
}

function insertion(text: string, object: Node, key: string, value: unknown): Edit[] {
  const layout = layoutOf(text);
  const last = object.children?.at(-1);
  const closing = indentAt(text, object.offset);
  const indent = (last && ownLineIndent(text, last.offset)) ?? closing + layout.unit;
  const brace = endOf(object) - 1;
  const trailingComma = last && commaAfter(text, last);
  const line = layout.eol + indent + render(key, value, indent, layout) + (trailingComma === undefined ? '' : ',');
  // Behind the comments that follow the last member, which belong to that member.
  const at = text.slice(0, brace).trimEnd().length;
  const keepsBreak = last !== undefined && ownLineIndent(text, brace) !== undefined;
  const added = keepsBreak
    ? { offset: at, length: 0, content: line }
    : { offset: at, length: brace - at, content: line + layout.eol + closing };
  const needsComma = last !== undefined && trailingComma === undefined;
  return needsComma ? [{ offset: endOf(last), length: 0, content: ',' }, added] : [added];
}

function replacement(text: string, { offset, length }: Node, key: string, value: unknown): Edit {
  return { offset, length, content: render(key, value, indentAt(text, offset), layoutOf(text)) };
}

function removal(text: string, object: Node, members: readonly Node[], index: number): Edit[] {
  const member = members[index];
  if (member === undefined) return [];
  const comma = commaAfter(text, member);
  const from = text.slice(0, member.offset).trimEnd().length;
  const to = comma === undefined ? endOf(member) : comma + 1;
  const left = text.slice(object.offset + 1, from) + text.slice(to, endOf(object) - 1);
  if (members.length === 1 && isBlank(left)) return [{ offset: object.offset, length: object.length, content: '{}' }];
  const edits = [{ offset: from, length: to - from, content: '' }];
  // Without it, the comma before the last member would be left dangling, which plain JSON does not allow.
  const previous = members[index - 1];
  const dangling = comma === undefined && previous ? commaAfter(text, previous) : undefined;
  return dangling === undefined ? edits : [{ offset: dangling, length: 1, content: '' }, ...edits];
}

function parseText(text: string): Node {
  const errors: ParseError[] = [];
  // A byte order mark is an error to the parser; a blank in its place keeps the offsets.
  const root = parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true });
  const [error] = errors;
  if (root && !error) return root;
  const before = text.slice(0, error?.offset ?? 0).split('\n');
  const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
  throw new JsonTextError(`${place}: ${error ? wordsOf(printParseErrorCode(error.error)) : 'value expected'}`);
}

/** `CommaExpected` as "comma expected". */
function wordsOf(code: string): string {
  return code.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}

/** The last one of that name, which is the one that counts. */
function memberOf(object: Node, key: string): Node | undefined {
  if (object.type !== 'object') return undefined;
  return object.children?.findLast((member) => member.children?.[0]?.value === key);
}

function valueOf(member: Node | undefined): Node | undefined {
  return member?.children?.[1];
}

function asObject(node: Node | undefined, what: string): Node {
  if (node?.type === 'object') return node;
  throw new JsonTextError(`${what} is not an object`);
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function commaAfter(text: string, node: Node): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(endOf(node));
  scanner.scan();
  const next = scanner.getTokenOffset();
  return text[next] === ',' ? next : undefined;
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

/** The indent of the line that holds this offset. */
function indentAt(text: string, at: number): string {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, at))?.[0] ?? '';
}

/** Undefined when something else precedes it on its line. */
function ownLineIndent(text: string, at: number): string | undefined {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  const before = text.slice(lineStart, at);
  return lineStart > 0 && before.trim() === '' ? before : undefined;
}

function nest(path: readonly string[], value: unknown): unknown {
  return path.reduceRight((inner, key) => ({ [key]: inner }), value);
}

function isBlank(text: string): boolean {
  return text.replace('\uFEFF', '').trim() === '';
}
