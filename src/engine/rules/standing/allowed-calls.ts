import path from 'node:path';
import type { RuleFields } from '../../../schema/standing-rules.ts';
import { EDIT_TOOLS } from '../../../schema/enums.ts';
import { matchesWholePath } from '../wildcards.ts';
import { countedPath, insidePath, isWithin, type RulePlace } from './place.ts';
import { openCommand, type OpenCommand, type Kind } from './prefixes.ts';
import { simpleCommand } from './words.ts';

/*
 * What an allow rule matches. It refuses to guess: a tool, a field of its input or a form of a command that is not known
 * here matches nothing, and the call is asked about.
 */

/** A tool call, and what Claude Code says about where the tool comes from. */
export interface RuleCall {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly mcpServer?: { readonly name: string; readonly source: string } | undefined;
}

/** What an allow rule matches, read once. */
export type AllowedCalls =
  | { readonly kind: 'command'; readonly words: readonly string[] }
  /** The command alone, or followed by anything that the table lists. */
  | { readonly kind: 'open command'; readonly words: readonly string[]; readonly entry: OpenCommand }
  | { readonly kind: 'files'; readonly glob: string }
  | { readonly kind: 'host'; readonly host: string }
  | { readonly kind: 'tool' };

/** Fields of the file tools that a rule knows, and which of them names the file. */
const FILE_TOOLS: ReadonlyMap<string, { readonly file: string; readonly others: ReadonlySet<string> }> = new Map([
  ['Read', { file: 'file_path', others: new Set(['offset', 'limit', 'pages']) }],
  ['Write', { file: 'file_path', others: new Set(['content']) }],
  ['Edit', { file: 'file_path', others: new Set(['old_string', 'new_string', 'replace_all']) }],
  ['NotebookEdit', { file: 'notebook_path', others: new Set(['cell_id', 'cell_type', 'edit_mode', 'new_source']) }],
]);

const COMMAND_FIELDS: ReadonlySet<string> = new Set(['command', 'description', 'timeout']);
/** Tools that do the same whatever their input is. */
const PLAIN_TOOLS: ReadonlySet<string> = new Set(['WebSearch']);
const MCP_TOOL = /^mcp__[\w-]+__[\w-]+$/;
/** Servers that the user or the machine's administrator set up, not a project, a plugin or a caller. */
const TRUSTED_SOURCES: ReadonlySet<string> = new Set(['user', 'managed', 'enterprise']);

/** What an allow rule would match, or why it can match nothing. */
export function allowedCalls({ tool, match }: Pick<RuleFields, 'tool' | 'match'>): AllowedCalls | { problem: string } {
  if (tool === 'Bash') return allowedCommands(match);
  if (FILE_TOOLS.has(tool)) {
    if (match === undefined) return { problem: `${tool} needs a glob, such as src/** or **/*.md.` };
    if (/[?[\]{}\\~]|^[/!]|(?:^|\/)\.\.?(?:\/|$)/.test(match))
      return { problem: 'A glob is relative to the directory, and only * and ** stand for something else.' };
    return { kind: 'files', glob: match };
  }
  if (tool === 'WebFetch') {
    const host = /^domain:([a-z0-9-]+(?:\.[a-z0-9-]+)+)$/.exec(match ?? '')?.[1];
    return host === undefined ? { problem: 'WebFetch needs a host: domain:example.com.' } : { kind: 'host', host };
  }
  if (!PLAIN_TOOLS.has(tool) && !MCP_TOOL.test(tool))
    return { problem: `There are no rules that allow ${tool}; each call is asked about.` };
  return match === undefined
    ? { kind: 'tool' }
    : { problem: `${tool} takes no match: a rule allows all of its calls.` };
}

function allowedCommands(match: string | undefined): AllowedCalls | { problem: string } {
  if (match === undefined) return { problem: 'Bash needs a command, such as npm test.' };
  const isOpen = / \*$|:\*$/.test(match);
  const words = simpleCommand(isOpen ? match.slice(0, -2) : match);
  if (!words)
    return {
      problem:
        'Only one simple command can be allowed: no operators, redirections, variables, globs or quoted programs, and no command of the shell itself.',
    };
  if (!isOpen) return { kind: 'command', words };
  const entry = openCommand(words);
  if (!entry || entry.words.length > words.length)
    return {
      problem: `What follows ${words.join(' ')} is not known to be harmless: write the command out. Commands that can end in * are listed in docs/rules.md.`,
    };
  return { kind: 'open command', words, entry };
}

/** The words of a Bash call that a rule could match. */
export function commandWords({ toolName, input }: RuleCall): string[] | undefined {
  if (toolName !== 'Bash' || !hasOnly(input, COMMAND_FIELDS)) return undefined;
  const { command, description = '', timeout = 0 } = input;
  if (typeof command !== 'string' || typeof description !== 'string' || typeof timeout !== 'number') return undefined;
  return simpleCommand(command);
}

/** Whether a command that begins with the words of an open rule has nothing but what the table lists. */
export function followsTable(
  { words: head, entry }: Extract<AllowedCalls, { kind: 'open command' }>,
  words: readonly string[],
  place: RulePlace,
): boolean {
  if (!head.every((word, at) => words[at] === word)) return false;
  // `rg x --files` begins like `rg *`, and `rg --files x` is another command of the table.
  if (openCommand(words) !== entry) return false;
  return argumentsAreListed(
    entry,
    words.slice(entry.words.length),
    (file) => file === '-' || insidePath(place, file) !== undefined,
  );
}

/** The file that a call of a file tool is about, if a rule may speak of it. */
export function namedFile({ toolName, input }: RuleCall, place: RulePlace): string | undefined {
  const tool = FILE_TOOLS.get(toolName);
  if (!tool) return undefined;
  const { [tool.file]: named, ...others } = input;
  if (typeof named !== 'string' || !hasOnly(others, tool.others)) return undefined;
  const real = insidePath(place, named);
  if (real === undefined) return undefined;
  if (EDIT_TOOLS.has(toolName) && (isProtected(named) || isProtected(real))) return undefined;
  return countedPath(place, real);
}

/** `directory`: missing where a rule holds everywhere; then a glob is relative to where the session works. */
export function globCovers(glob: string, directory: string | undefined, file: string, place: RulePlace): boolean {
  const bases = directory === undefined ? place.roots.map(({ countsAs }) => countsAs) : [directory];
  return bases.some(
    (base) => isWithin(file, base) && matchesWholePath(glob, path.relative(base, file).replaceAll(path.sep, '/')),
  );
}

/** What Claude Code or git would act on later. Compared as the file systems do that ignore case and hidden characters. */
const PROTECTED: ReadonlySet<string> = new Set([
  '.git',
  '.claude',
  '.claude.json',
  '.mcp.json',
  'claude.md',
  'claude.local.md',
]);

function isProtected(file: string): boolean {
  return file.split(/[\\/]/).some((name) => {
    const seen = name
      .normalize('NFKC')
      .replace(/\p{Cf}/gu, '')
      .toLowerCase()
      .replace(/[. ]*(?::.*)?$/, '');
    // Other names on Windows: GIT~1 and .git::$INDEX_ALLOCATION.
    return PROTECTED.has(seen) || /~\d/.test(seen);
  });
}

/** The host that a WebFetch call asks, if nothing else in the address says where it goes. */
export function fetchedHost({ toolName, input }: RuleCall): string | undefined {
  const { url, prompt, ...others } = input;
  if (toolName !== 'WebFetch' || typeof url !== 'string' || typeof prompt !== 'string') return undefined;
  if (Object.keys(others).length > 0 || !/^https?:\/\/[!-~]+$/.test(url) || /[\\@]/.test(url) || !URL.canParse(url))
    return undefined;
  const { hostname, port } = new URL(url);
  return port === '' ? hostname : undefined;
}

/** Whether a rule that names the whole tool may allow this call. */
export function isPlainTool({ toolName, mcpServer }: RuleCall): boolean {
  if (PLAIN_TOOLS.has(toolName)) return true;
  if (!MCP_TOOL.test(toolName) || !mcpServer || !TRUSTED_SOURCES.has(mcpServer.source)) return false;
  // The name of a tool is made of both names, so that another server's tool could have the same.
  return toolName.startsWith(`mcp__${mcpServer.name}__`) && !mcpServer.name.includes('__');
}

function hasOnly(input: Readonly<Record<string, unknown>>, fields: ReadonlySet<string>): boolean {
  return Object.keys(input).every((field) => fields.has(field));
}

/** Whether the words after those of the entry are all listed, and every path among them is inside. */
export function argumentsAreListed(
  entry: OpenCommand,
  args: readonly string[],
  isInside: (path: string) => boolean,
): boolean {
  const given = readArguments(entry, args, isInside);
  if (!given) return false;
  const { options, operands } = given;
  if (entry.most !== undefined && operands.length > entry.most) return false;
  const named = entry.firstIsPathWith?.some((option) => options.has(option)) ?? false;
  const [first, ...others] = operands;
  if (entry.first !== undefined && !named) {
    const isListed = entry.first === 'text' || first === undefined || entry.first.test(first);
    return isListed && others.every(isInside);
  }
  return operands.every(isInside);
}

interface GivenArguments {
  readonly options: ReadonlySet<string>;
  readonly operands: readonly string[];
}

function readArguments(
  entry: OpenCommand,
  args: readonly string[],
  isInside: (path: string) => boolean,
): GivenArguments | undefined {
  const options = new Set<string>();
  const operands: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? '';
    if (word === '--') {
      if (entry.ownParser) return undefined;
      operands.push(...args.slice(at + 1));
      break;
    }
    if (!word.startsWith('-') || word === '-') {
      operands.push(word);
      continue;
    }
    const option = entry.most !== undefined && operands.length > 0 ? undefined : readOption(entry, word);
    if (!option) return undefined;
    const { names, value } = option;
    for (const name of names) options.add(name);
    if (value === undefined) continue;
    if (value.text !== undefined) {
      if (!isListedValue(value.kind, value.text, isInside)) return undefined;
      continue;
    }
    const next = args[++at];
    // A program that knows the option without a value would take it for an option or a path of its own.
    if (next === undefined || next.startsWith('-') || !isInside(next)) return undefined;
    if (!isListedValue(value.kind, next, isInside)) return undefined;
  }
  return { options, operands };
}

interface GivenOption {
  readonly names: readonly string[];
  /** Without a text, the next word is the value. */
  readonly value?: { readonly kind: Kind; readonly text?: string };
}

function readOption(entry: OpenCommand, word: string): GivenOption | undefined {
  const { long = [], values = {}, attached = {} } = entry;
  if (entry.digits && /^-\d+$/.test(word)) return { names: [word] };
  if (word.startsWith('--') || entry.singleDash) {
    if (long.includes(word)) return { names: [word] };
    const equals = word.indexOf('=');
    const name = equals < 0 ? word : word.slice(0, equals);
    if (equals < 0) {
      const kind = own(values, name);
      return kind && { names: [name], value: { kind } };
    }
    const kind = entry.singleDash ? undefined : (own(attached, name) ?? own(values, name));
    return kind && { names: [name], value: { kind, text: word.slice(equals + 1) } };
  }
  return readLetters(entry, word);
}

function readLetters({ flags = '', values = {}, ownParser }: OpenCommand, word: string): GivenOption | undefined {
  const names: string[] = [];
  for (let at = 1; at < word.length; at++) {
    const letter = word.charAt(at);
    const name = `-${letter}`;
    names.push(name);
    const kind = own(values, name);
    if (kind && at + 1 === word.length) return { names, value: { kind } };
    if (kind) return ownParser ? undefined : { names, value: { kind, text: word.slice(at + 1) } };
    if (!flags.includes(letter)) return undefined;
  }
  return { names };
}

export function own(kinds: Readonly<Record<string, Kind>>, name: string): Kind | undefined {
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

function isListedValue(kind: Kind, text: string, isInside: (path: string) => boolean): boolean {
  switch (kind) {
    case 'number':
      return /^[+-]?\d+$/.test(text);
    case 'size':
      return /^[+-]?\d+(?:b|[kKMGT]B?)?$/.test(text);
    case 'path':
      return isInside(text);
    case 'format':
      return !/%[ +-]?[G(]/.test(text);
    case 'ref order':
      return /^-?(?:(?:version|v):)?(?:refname|objectname|(?:author|committer|tagger|creator)date)$/.test(text);
    case 'text':
      return true;
  }
}
