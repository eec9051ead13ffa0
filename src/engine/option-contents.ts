import { readFileSync } from 'node:fs';
import path from 'node:path';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { SessionOptions } from '../schema/session-options.ts';

/*
 * Rights can be written in more places than the option that is named after them: a settings file has a permission
 * mode, directories and variables, an agent has a mode and servers, a server has variables. A rule that looks at one
 * place only is no rule.
 */

export interface OptionContents {
  /** As they were written, which need not be modes there are. */
  readonly modes: readonly unknown[];
  readonly directories: readonly string[];
  /** Variables of Claude Code itself. */
  readonly variables: readonly string[];
  /** Variables of the servers it starts. */
  readonly serverVariables: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** `cwd` is where a relative path of a settings file begins. */
export function contentsOf(options: SessionOptions, cwd: string): OptionContents {
  const { permissionMode, additionalDirectories = [], env = {}, mcpServers = {} } = options;
  const settings = settingsIn(options.settings, cwd);
  const permissions = fields(settings['permissions']);
  const agents = Object.values(options.agents ?? {});
  const servers = [
    mcpServers,
    ...agents.flatMap(({ mcpServers: own }) => (Array.isArray(own) ? (own as unknown[]) : [])),
  ];
  return {
    modes: [permissionMode, permissions['defaultMode'], ...agents.map((agent) => agent['permissionMode'])].filter(
      (mode) => mode !== undefined,
    ),
    directories: [...additionalDirectories, ...strings(permissions['additionalDirectories'])],
    variables: [...Object.keys(env), ...Object.keys(fields(settings['env']))],
    serverVariables: servers
      .flatMap((group) => Object.values(fields(group)))
      .flatMap((server) => Object.keys(fields(fields(server)['env']))),
  };
}

/** A settings text is JSON or the path of a file with JSON, as for Claude Code itself. */
export function settingsIn(settings: SessionOptions['settings'], cwd: string): Fields {
  if (typeof settings !== 'string') return settings ?? {};
  const isInline = settings.trimStart().startsWith('{');
  try {
    return fields(JSON.parse(isInline ? settings : readFileSync(path.resolve(cwd, settings), 'utf8')));
  } catch (error) {
    throw new DomainError('INVALID_ARGUMENT', `settings: ${messageOf(error)}`);
  }
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
