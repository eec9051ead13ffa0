import { homedir } from 'node:os';
import path from 'node:path';

/** A call of a tool that rules are asked about. */
export interface ToolCall {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Relative paths, in rules and in the input, count from here. */
  readonly cwd: string;
}

/** `Bash`, `Bash(git diff *)`, `Edit(src/**)`, `mcp__server`: a tool's name and perhaps what of it. */
interface ToolRule {
  readonly toolName: string;
  readonly specifier: string | undefined;
}

/** A rule about paths holds for every tool that does the same to files. */
const FAMILIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['Edit', ['Write', 'NotebookEdit']],
  ['Read', ['Grep', 'Glob']],
  ['Task', ['Agent']],
  ['Agent', ['Task']],
]);

const COMMAND_TOOLS: ReadonlySet<string> = new Set(['Bash', 'PowerShell', 'Monitor']);
const PATH_FIELDS = ['file_path', 'notebook_path', 'path'] as const;
const OTHER_FIELDS = ['url', 'query', 'skill', 'subagent_type'] as const;

/**
 * The first rule that refuses this call, if any does. Claude Code has its own, exact reading of the rules; this one
 * stands where Claude Code no longer looks, at an input that was changed with the answer, so it errs on the safe side.
 */
export function refusingRule(rules: readonly string[], call: ToolCall): string | undefined {
  return rules.find((rule) => matches(parseRule(rule.trim()), call));
}

function parseRule(rule: string): ToolRule {
  const [, toolName, specifier] = /^([^(]+)\((.*)\)$/s.exec(rule) ?? [];
  return toolName === undefined ? { toolName: rule, specifier: undefined } : { toolName, specifier };
}

function matches({ toolName, specifier }: ToolRule, call: ToolCall): boolean {
  const all = specifier === undefined || specifier === '' || specifier === '*';
  if (all) return names(toolName, call.toolName);
  if (!names(toolName, call.toolName) && FAMILIES.get(toolName)?.includes(call.toolName) !== true) return false;
  if (COMMAND_TOOLS.has(call.toolName)) return commandMatches(specifier, textOf(call.input['command']));
  return pathMatches(specifier, call) || otherMatches(specifier, call.input);
}

/** `mcp__server` and `mcp__server__*` name all tools of a server. */
function names(rule: string, toolName: string): boolean {
  if (rule === toolName) return true;
  return rule.startsWith('mcp__') && toolName.startsWith(`${rule.replace(/(__)?\*$/, '')}__`);
}

/** A command line is refused when any of the commands in it is. Quotes are not understood: too much is refused, not too little. */
function commandMatches(specifier: string, line: string): boolean {
  const pattern = commandPattern(specifier);
  const commands = [line, ...line.split(/[;&|\n()`{}]+/)];
  return commands.some((command) => pattern.test(withoutPrefix(command)));
}

/** Words before a command that do not change which command it is. */
const PREFIX = /^(?:\s|["'\\!$]|\w+=\S*\s|(?:sudo|env|time|nohup|command|exec|builtin|xargs|then|do|else)\s)+/;

function withoutPrefix(command: string): string {
  return command.replace(PREFIX, '').trim();
}

/** `git diff *` and the older `git diff:*` both mean the command alone or with anything behind it. */
function commandPattern(specifier: string): RegExp {
  const [, head = specifier, open] = /^(.*?)(:\*| \*)?$/s.exec(specifier) ?? [];
  return new RegExp(`^${withWildcards(head, '.*')}${open === undefined ? '' : '(?:\\s.*)?'}$`, 's');
}

function pathMatches(specifier: string, { input, cwd }: ToolCall): boolean {
  const pattern = pathPattern(specifier, cwd);
  return PATH_FIELDS.some((field) => {
    const given = textOf(input[field]);
    return given !== '' && pattern.test(path.resolve(cwd, given));
  });
}

/** As in .gitignore: `//` is the root, `~/` the home, a name without a slash is found at any depth. */
function pathPattern(specifier: string, cwd: string): RegExp {
  const absolute = absoluteSpecifier(specifier.replace(/\/$/, ''), cwd);
  const pieces = absolute.split('**/').map((piece) =>
    piece
      .split('**')
      .map((part) => withWildcards(part, '[^/]*'))
      .join('.*'),
  );
  return new RegExp(`^${pieces.join('(?:.*/)?')}(?:/.*)?$`, 's');
}

function absoluteSpecifier(specifier: string, cwd: string): string {
  if (specifier.startsWith('//')) return specifier.slice(1);
  if (specifier.startsWith('~/')) return `${homedir()}${specifier.slice(1)}`;
  const relative = specifier.replace(/^\.?\//, '');
  return specifier.includes('/') || specifier.includes('**') ? `${cwd}/${relative}` : `${cwd}/**/${relative}`;
}

function otherMatches(specifier: string, input: ToolCall['input']): boolean {
  const domain = specifier.startsWith('domain:') ? specifier.slice('domain:'.length) : undefined;
  if (domain !== undefined)
    return new RegExp(`^${withWildcards(domain, '.*')}$`, 'i').test(hostOf(textOf(input['url'])));
  const pattern = new RegExp(`^${withWildcards(specifier, '.*')}$`, 's');
  return OTHER_FIELDS.some((field) => pattern.test(textOf(input[field]).trim()));
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function withWildcards(text: string, wildcard: string): string {
  return text.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*+/g, wildcard);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
