/** Adds, changes and removes one table of a TOML text, and refuses whatever it does not recognise. */

export class TomlTextError extends Error {
  override readonly name = 'TomlTextError';
}

interface Table {
  readonly path: readonly string[];
  readonly start: number;
  /** Just after its last line that is neither blank nor a comment. */
  readonly end: number;
}

/** The names of the tables directly below this one. */
export function tableNames(text: string, root: string): string[] {
  return tablesOf(text).flatMap(({ path: [first, name, ...rest] }) =>
    first === root && name !== undefined && rest.length === 0 ? [name] : [],
  );
}

/** The text of a table with its header, without those below it. */
export function readTable(text: string, path: readonly string[]): string | undefined {
  const table = tablesOf(text).find((candidate) => isSame(candidate.path, path));
  if (table === undefined) refuseOtherForms(text, path);
  return table && text.slice(table.start, table.end);
}

export function appendTable(text: string, path: readonly string[], values: Readonly<Record<string, unknown>>): string {
  refuseOtherForms(text, path);
  const eol = eolOf(text);
  const lines = Object.entries(values).map(([key, value]) => `${key} = ${tomlValue(value)}`);
  const block = [`[${path.map(bareOrQuoted).join('.')}]`, ...lines, ''].join(eol);
  const separator = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
  return text + separator + block;
}

export function replaceTable(text: string, path: readonly string[], change: (table: string) => string): string {
  const table = tablesOf(text).find((candidate) => isSame(candidate.path, path));
  if (table === undefined) return text;
  return text.slice(0, table.start) + change(text.slice(table.start, table.end)) + text.slice(table.end);
}

/** With the tables below it, and the blank line before each. */
export function removeTable(text: string, path: readonly string[]): string {
  const doomed = tablesOf(text).filter((table) => isSame(table.path.slice(0, path.length), path));
  return doomed.reduceRight(
    (left, { start, end }) => left.slice(0, start).replace(/(^|\n)\r?\n$/, '$1') + left.slice(end),
    text,
  );
}

/** A table that is already defined in another notation would be defined twice, which is invalid TOML. */
function refuseOtherForms(text: string, path: readonly string[]): void {
  const [root = '', name = ''] = path;
  const quoted = (key: string): string => `["']?${key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}["']?`;
  const atRoot = text.slice(0, tablesOf(text)[0]?.start ?? text.length);
  const inParent = tablesOf(text).find((table) => isSame(table.path, [root]));
  const parent = inParent ? text.slice(inParent.start, inParent.end) : '';
  if (
    new RegExp(`^[ \\t\\uFEFF]*${quoted(root)}\\s*[.=]`, 'm').test(atRoot) ||
    new RegExp(`^[ \\t]*${quoted(name)}\\s*[.=]`, 'm').test(parent)
  ) {
    throw new TomlTextError(`${root} is written as an inline table or with dotted keys`);
  }
}

const KEY = /(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')/;
const KEYS = new RegExp(`${KEY.source}(?:[ \\t]*\\.[ \\t]*${KEY.source})*`);
const HEADER = new RegExp(`^[ \\t\\uFEFF]*\\[\\[?[ \\t]*(${KEYS.source})[ \\t]*\\]\\]?[ \\t]*(?:#[^\\n]*)?\\r?$`);
const ASSIGNMENT = new RegExp(
  `^[ \\t\\uFEFF]*${KEYS.source}[ \\t]*=[ \\t]*(?:["'[{]|true\\b|false\\b|[+-]?(?:inf\\b|nan\\b|\\d))`,
);
const NESTING: Readonly<Record<string, number>> = { '[': 1, '{': 1, ']': -1, '}': -1 };
const TOKEN =
  /"""(?:\\[\s\S]|[^\\])*?"{3,5}(?!")|'''[\s\S]*?'{3,5}(?!')|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[[\]{}]/g;

function tablesOf(text: string): Table[] {
  const tables: { path: readonly string[]; start: number; end: number }[] = [];
  for (const { line, start, end } of statementsOf(text)) {
    const header = HEADER.exec(line)?.[1];
    if (header !== undefined) tables.push({ path: keysOf(header), start, end });
    else if (!/^\s*(#[^\n]*)?$/.test(line)) {
      if (!isAssignment(line))
        throw new TomlTextError(`line ${String(text.slice(0, start).split('\n').length)} is not valid TOML`);
      const current = tables.at(-1);
      if (current) current.end = end;
    }
  }
  return tables;
}

/** What a program cannot read, it must not add to: a client ignores a file with one invalid line, whatever is appended. */
function isAssignment(line: string): boolean {
  if (!ASSIGNMENT.test(line)) return false;
  let depth = 0;
  const rest = line.replace(TOKEN, (token) => {
    depth += NESTING[token] ?? 0;
    return '';
  });
  return depth === 0 && !/["']/.test(rest);
}

/** Logical lines: a multi-line array or string counts as one. */
function* statementsOf(text: string): Generator<{ line: string; start: number; end: number }> {
  let start = 0;
  while (start < text.length) {
    const end = endOfStatement(text, start);
    yield { line: text.slice(start, end).replace(/\n$/, ''), start, end };
    start = end;
  }
}

function endOfStatement(text: string, start: number): number {
  const lineEnd = (at: number): number => {
    const newline = text.indexOf('\n', at);
    return newline < 0 ? text.length : newline + 1;
  };
  let end = lineEnd(start);
  if (HEADER.test(text.slice(start, end).replace(/\n$/, ''))) return end;
  let depth = 0;
  TOKEN.lastIndex = start;
  for (let token = TOKEN.exec(text); token !== null && (depth > 0 || token.index < end); token = TOKEN.exec(text)) {
    depth += NESTING[token[0]] ?? 0;
    end = lineEnd(Math.max(start, token.index + token[0].length - 1));
  }
  return end;
}

function keysOf(header: string): string[] {
  const keys = header.matchAll(/\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+))\s*\.?/g);
  return [...keys].map(([, basic, literal, bare]) => basic ?? literal ?? bare ?? '');
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((key, index) => key === other[index]);
}

function bareOrQuoted(key: string): string {
  return /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
}

/** TOML reads JSON's string escapes the same way. */
export function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, inner]) => `${bareOrQuoted(key)} = ${tomlValue(inner)}`);
  return `{ ${pairs.join(', ')} }`;
}

function eolOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}
