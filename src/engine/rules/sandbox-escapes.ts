import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';
import { fields, type Fields } from '../../schema/json.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Directories } from './directories.ts';

/** No hand-written settings file comes close. */
const MAX_BYTES = 1_000_000;

/**
 * The settings as an object: a string is JSON or the path of a JSON file, as for Claude Code itself. A file is read
 * once, here, so that what was checked is what runs. No error repeats any of the text: it could be any file.
 */
export async function settingsObject(
  settings: SessionOptions['settings'],
  cwd: string,
  directories: Directories,
): Promise<Record<string, unknown> | undefined> {
  if (typeof settings !== 'string') return settings;
  if (settings.trimStart().startsWith('{')) return parsed(settings, 'the text');
  const file = path.resolve(cwd, directories.written(settings, 'settings', cwd));
  return parsed(await textOf(file), file);
}

/**
 * The settings with every directory as the absolute path that was checked, because Claude Code may resolve another form
 * differently.
 */
export function withCheckedDirectories(
  settings: Record<string, unknown>,
  cwd: string,
  directories: Directories,
): Record<string, unknown> {
  if (!directories.checksSettings) return settings;
  const checked = { ...settings };
  for (const name of ['autoMemoryDirectory', 'plansDirectory']) {
    if (checked[name] !== undefined) checked[name] = directories.written(text(checked[name], name), name, cwd);
  }
  const { permissions } = settings;
  if (typeof permissions !== 'object' || permissions === null || !('additionalDirectories' in permissions))
    return checked;
  const { additionalDirectories: given } = permissions;
  if (!Array.isArray(given))
    throw new DomainError('INVALID_ARGUMENT', 'settings: additionalDirectories is not a list.');
  const additionalDirectories = given.map((one) =>
    directories.written(text(one, 'additionalDirectories'), 'additionalDirectories', cwd),
  );
  return { ...checked, permissions: { ...permissions, additionalDirectories } };
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new DomainError('INVALID_ARGUMENT', `settings: a path in ${name} is not text.`);
}

function parsed(text: string, what: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The same error as for JSON that is not an object.
  }
  throw new DomainError('INVALID_ARGUMENT', `settings: ${what} is not a JSON object.`);
}

async function textOf(file: string): Promise<string> {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe would block until something writes to it.
    handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch {
    throw unusable(file, 'cannot be read');
  }
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw unusable(file, 'is not a regular file');
    if (found.size > MAX_BYTES) throw unusable(file, `is larger than ${String(MAX_BYTES)} bytes`);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(found.size), 0, found.size, 0);
    return buffer.toString('utf8', 0, bytesRead).replace(/^\uFEFF/, '');
  } finally {
    await handle.close();
  }
}

function unusable(file: string, why: string): DomainError {
  return new DomainError('INVALID_ARGUMENT', `settings: ${file} ${why}.`);
}

/*
 * Where the operator switched the sandbox on, a caller may ask for nothing that runs a program beside it or makes it
 * wider. Refused, not ignored: a caller that relies on it should learn why its session differs.
 */

/** Settings that run nothing; any other key may be a hook, a helper, a server or a plugin, even in a later version. */
const SETTINGS_THAT_RUN_NOTHING: ReadonlySet<string> = new Set([
  ...['$schema', 'permissions', 'env', 'sandbox', 'model', 'availableModels', 'effortLevel', 'alwaysThinkingEnabled'],
  ...['outputStyle', 'language', 'attribution', 'includeCoAuthoredBy', 'includeGitInstructions', 'cleanupPeriodDays'],
  ...['claudeMdExcludes', 'respectGitignore', 'autoMemoryEnabled', 'disableAllHooks', 'skipWebFetchPreflight'],
]);

/** Keys of `sandbox` that a caller may set, with the values that do not widen it. */
const NO_WIDER: Readonly<Record<string, (value: unknown) => boolean>> = {
  enabled: (value) => value === true,
  failIfUnavailable: (value) => value === true,
  allowUnsandboxedCommands: (value) => value === false,
  autoAllowBashIfSandboxed: (value) => typeof value === 'boolean',
  network: (value) => hasOnly(value, ['deniedDomains', 'strictAllowlist']),
  filesystem: (value) => hasOnly(value, ['denyRead', 'denyWrite']),
};

/**
 * Variables by which Claude Code, its shell and its helpers find programs, libraries and configuration. They take
 * effect before the sandbox exists, or on what creates it.
 */
const STEERS_CLAUDE_CODE =
  /^(PATH|HOME|USERPROFILE|SHELL|ENV|IFS|TMP|TEMP|TMPDIR|ZDOTDIR|GCONV_PATH|EDITOR|VISUAL|PAGER|NODE_(?!ENV$).*|(BASH|BUN|CLAUDE|DYLD|GIT|IS_SANDBOX|LD|RIPGREP|SANDBOX|SRT|SSH|XDG)(_.*)?|CLAUDECODE|.*_PROXY)$/i;

/** Claude Code opens the sandbox to what such rules allow: files outside the project, hosts. */
const OPENS_THE_SANDBOX = /^(?:(?:Edit|Write|MultiEdit|NotebookEdit|Read|Grep|Glob)\(\s*(?:\/\/|~|.*\.\.)|WebFetch\()/;

const AGENT_FIELDS_THAT_RUN = ['mcpServers', 'hooks'];

/** `settings` are the caller's own, read from their file if they name one. */
export function checkSandboxEscapes(asked: SessionOptions, settings: Fields, cwd: string): void {
  for (const name of ['mcpServers', 'plugins'] as const)
    if (Object.keys(asked[name] ?? {}).length > 0) throw escape(name, 'starts programs outside the sandbox');
  if (asked.pathToClaudeCodeExecutable !== undefined)
    throw escape('pathToClaudeCodeExecutable', 'names the program that creates the sandbox');
  for (const [name, agent] of Object.entries(asked.agents ?? {}))
    if (AGENT_FIELDS_THAT_RUN.some((field) => field in agent))
      throw escape(`agents: ${name}`, 'starts programs outside the sandbox');
  if (asked.debugFile !== undefined && path.relative(cwd, path.resolve(cwd, asked.debugFile)).startsWith('..'))
    throw escape('debugFile', `is outside ${cwd}`);
  for (const key of Object.keys(settings))
    if (!SETTINGS_THAT_RUN_NOTHING.has(key)) throw escape(`settings: ${key}`, 'can run programs outside the sandbox');
  for (const variable of [...Object.keys(asked.env ?? {}), ...Object.keys(fields(settings['env']))])
    if (STEERS_CLAUDE_CODE.test(variable))
      throw escape(`env: ${variable}`, 'affects the program that creates the sandbox');
  const allowed = fields(settings['permissions'])['allow'];
  for (const rule of [...(asked.allowedTools ?? []), ...(Array.isArray(allowed) ? (allowed as unknown[]) : [])])
    if (OPENS_THE_SANDBOX.test(String(rule).trim())) throw escape(String(rule), 'opens the sandbox');
  for (const sandbox of [asked.sandbox ?? {}, fields(settings['sandbox'])])
    for (const [key, value] of Object.entries(sandbox))
      if (NO_WIDER[key]?.(value) !== true) throw escape(`sandbox: ${key}`, 'would widen the sandbox');
}

function escape(what: string, why: string): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    `${what} ${why}. The operator requires every session to be sandboxed (CLAUDE_CODE_MCP_SANDBOX): omit it.`,
  );
}

function hasOnly(value: unknown, keys: readonly string[]): boolean {
  return Object.keys(fields(value)).every((key) => keys.includes(key));
}
