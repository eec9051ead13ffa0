import { homedir } from 'node:os';
import path from 'node:path';
import { matchesPath, matchesWildcards } from './wildcards.ts';

/** A tool call to check against rules. */
export interface ToolCall {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Relative paths, in rules and in the input, are resolved against this. */
  readonly cwd: string;
}

/** `Bash`, `Bash(git diff *)`, `Edit(src/**)`, `mcp__server`: a tool's name and optionally a specifier. */
interface ToolRule {
  readonly toolName: string;
  readonly specifier: string | undefined;
}

/** A path rule applies to every tool that does the same to files. */
export const FAMILIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['Edit', ['Write', 'NotebookEdit']],
  ['Read', ['Grep', 'Glob']],
  ['Task', ['Agent']],
  ['Agent', ['Task']],
]);

export const COMMAND_TOOLS: ReadonlySet<string> = new Set(['Bash', 'PowerShell', 'Monitor']);
export const PATH_FIELDS = ['file_path', 'notebook_path', 'path'] as const;
const OTHER_FIELDS = ['url', 'query', 'skill', 'subagent_type'] as const;

const MAX_COMMAND_CHARS = 100_000;
const MAX_PATH_CHARS = 4_096;

/**
 * The first rule that refuses this call, if any. Claude Code interprets the rules exactly; this check covers what
 * Claude Code no longer sees, input changed by an answer, so it errs on the safe side.
 */
export function refusingRule(rules: readonly string[], call: ToolCall): string | undefined {
  // Parsed once, however many rules there are.
  const commands = COMMAND_TOOLS.has(call.toolName) ? commandsIn(textOf(call.input['command'])) : undefined;
  return rules.find((rule) => matches(parseRule(rule.trim()), call, commands));
}

function parseRule(rule: string): ToolRule {
  const [, toolName, specifier] = /^([^(]+)\((.*)\)$/s.exec(rule) ?? [];
  return toolName === undefined ? { toolName: rule, specifier: undefined } : { toolName, specifier };
}

function matches({ toolName, specifier }: ToolRule, call: ToolCall, commands: readonly string[] | undefined): boolean {
  const all = specifier === undefined || specifier === '' || specifier === '*';
  if (all) return names(toolName, call.toolName);
  if (!names(toolName, call.toolName) && FAMILIES.get(toolName)?.includes(call.toolName) !== true) return false;
  if (tooLongToMatch(call.input)) return true;
  if (commands) return commandMatches(specifier, commands);
  return pathMatches(specifier, call) || otherMatches(specifier, call.input);
}

/**
 * No shell accepts such a command and no system such a path; matching it against many rules would keep the server busy.
 */
export function tooLongToMatch(input: ToolCall['input']): boolean {
  const isLonger = (fields: readonly string[], chars: number): boolean =>
    fields.some((field) => textOf(input[field]).length > chars);
  return isLonger(['command', ...OTHER_FIELDS], MAX_COMMAND_CHARS) || isLonger(PATH_FIELDS, MAX_PATH_CHARS);
}

/** `mcp__server` and `mcp__server__*` name all tools of a server. */
export function names(rule: string, toolName: string): boolean {
  if (rule === toolName) return true;
  return rule.startsWith('mcp__') && toolName.startsWith(`${rule.replace(/(__)?\*$/, '')}__`);
}

/**
 * A command line is refused if any command in it is. Quotes are not parsed, and each word that may begin another command
 * counts as if it did: too much is refused, not too little.
 */
export function commandsIn(line: string): string[] {
  if (line.length > MAX_COMMAND_CHARS) return [];
  const joined = line.replace(/\\\r?\n/g, '');
  // `2>&1` ends no command, and a word ends where a redirection begins.
  const spaced = joined.replace(/(\d*)(?:&>>?|[<>]+[&|]?)/g, ' $1> ');
  const parts = new Set([
    joined,
    ...joined.split(SEPARATORS),
    ...spaced.split(SEPARATORS),
    ...(joined.match(UNQUOTED_PARTS) ?? []),
  ]);
  const commands = [...parts].flatMap((part) => {
    const bare = part.replace(/["'\\]/g, '');
    return [...commandsFrom(part, false), ...commandsFrom(bare, bare !== part)];
  });
  // A program may be named by its path.
  const named = commands.flatMap((command) => [command, command.replace(/^\S*\//, '')]);
  return [...new Set(named.flatMap((command) => [command, ...gitForms(command)]))];
}

/**
 * `git -C dir push` is a `git push`. Which words belong to options is not decided: with options in front, each later word
 * counts as the command.
 */
function gitForms(command: string): string[] {
  if (!command.startsWith('git -')) return [];
  const words = command.replace(/["'\\]/g, '').split(' ');
  const starts = words.flatMap((word, at) => (at === 0 || word.startsWith('-') ? [] : [at]));
  return starts.slice(0, mostStarts(command)).map((at) => ['git', ...words.slice(at)].join(' '));
}

/** The parts of a line between separators that are not quoted. */
const UNQUOTED_PARTS = /(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^;&|\n"'\\])+/g;

const SEPARATORS = /[;&|\n()`{}]+|\s-(?:exec|ok)(?:dir)?\s/;
/** Words before a command that do not change which command it is. */
const BEFORE_COMMAND = /^(?:if|elif|then|else|while|until|do|["'\\!$]+|\w+(?:\[.*\])?\+?=.*)$/;
/** What runs the command that it is given, after options and values of its own. */
const RUNNERS: ReadonlySet<string> = new Set(
  (
    'sudo doas env time nohup command exec builtin xargs eval coproc trap timeout nice ionice setsid stdbuf chroot flock ' +
    'watch busybox sh ash bash dash ksh zsh fish su runuser pkexec script parallel entr strace ltrace unshare nsenter ' +
    'setpriv prlimit taskset chrt systemd-run fakeroot unbuffer xvfb-run'
  ).split(' '),
);
const MAX_STARTS = 32;
/** No person writes a part that is longer; from there on fewer words are tried, so that many rules stay affordable. */
const LONG_PART = 4_000;
const MAX_STARTS_OF_LONG = 4;

function mostStarts(text: string): number {
  return text.length > LONG_PART ? MAX_STARTS_OF_LONG : MAX_STARTS;
}

/** A part of a command line, from each word that may be the program of a command. */
function commandsFrom(part: string, wasQuoted: boolean): string[] {
  const words = part.split(/\s+/).filter((word) => word !== '');
  const text = words.join(' ');
  const most = mostStarts(text);
  const commands: string[] = [];
  let mayBeNext = false;
  let isTarget = false;
  let start = 0;
  for (const word of words) {
    const isRedirection = /^\d*>$/.test(word);
    if (isRedirection || isTarget || BEFORE_COMMAND.test(word)) {
      // What was quoted may have had blanks in it.
      mayBeNext ||= wasQuoted && (isTarget || word.includes('='));
      isTarget = isRedirection;
    } else {
      commands.push(text.slice(start).replace(/^["'\\!$]+/, ''));
      mayBeNext ||= RUNNERS.has(word.replace(/^.*\//, ''));
      if (!mayBeNext || commands.length === most) break;
    }
    start += word.length + 1;
  }
  return commands;
}

export function commandMatches(specifier: string, commands: readonly string[]): boolean {
  const { head, open } = commandRule(specifier.trim().replace(/\s+/g, ' '));
  return commands.some((command) =>
    open ? matchesWildcards(`${head} *`, `${command} `) : matchesWildcards(head, command),
  );
}

/** `git diff *` and the older `git diff:*` both mean the command alone or followed by anything. */
function commandRule(specifier: string): { head: string; open: boolean } {
  const open = specifier.endsWith(':*') || specifier.endsWith(' *');
  return { head: open ? specifier.slice(0, -2) : specifier, open };
}

function pathMatches(specifier: string, { input, cwd }: ToolCall): boolean {
  const pattern = absoluteSpecifier(specifier.replace(/\/$/, ''), cwd);
  return PATH_FIELDS.some((field) => {
    const given = textOf(input[field]);
    return given !== '' && matchesPath(pattern, path.resolve(cwd, given));
  });
}

/** As in .gitignore: `//` is the root, `~/` the home, a name without a slash is found at any depth. */
export function absoluteSpecifier(specifier: string, cwd: string): string {
  if (specifier.startsWith('//')) return specifier.slice(1);
  if (specifier.startsWith('~/')) return `${homedir()}${specifier.slice(1)}`;
  const relative = specifier.replace(/^\.?\//, '');
  return specifier.includes('/') || specifier.includes('**') ? `${cwd}/${relative}` : `${cwd}/**/${relative}`;
}

export function otherMatches(specifier: string, input: ToolCall['input']): boolean {
  const domain = specifier.startsWith('domain:') ? specifier.slice('domain:'.length) : undefined;
  if (domain !== undefined) return matchesWildcards(domain.toLowerCase(), hostOf(textOf(input['url'])));
  return OTHER_FIELDS.some((field) => {
    const given = textOf(input[field]).trim();
    return given !== '' && matchesWildcards(specifier, given);
  });
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.toLowerCase() : '';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
