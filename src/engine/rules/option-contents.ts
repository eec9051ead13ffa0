import type { SessionOptions } from '../../schema/session-options.ts';

/*
 * Rights can be written in more places than the option that is named after them: a settings file has a permission
 * mode, directories and variables, an agent has a mode and servers, a server has variables. A rule that checks only one
 * of them is useless.
 */

export interface OptionContents {
  /** As given, which need not be valid modes. */
  readonly modes: readonly unknown[];
  /** Variables of Claude Code itself. */
  readonly variables: readonly string[];
  /** Variables of the servers it starts. */
  readonly serverVariables: readonly string[];
  /** What an agent would send to itself as if it came from the caller. */
  readonly prompts: readonly unknown[];
}

type Fields = Readonly<Record<string, unknown>>;

export function contentsOf(options: SessionOptions, settings: Fields = {}): OptionContents {
  const { permissionMode, env = {}, mcpServers = {} } = options;
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
    variables: [...Object.keys(env), ...Object.keys(fields(settings['env']))],
    serverVariables: servers
      .flatMap((group) => Object.values(fields(group)))
      .flatMap((server) => Object.keys(fields(fields(server)['env']))),
    prompts: agents.map(({ initialPrompt }) => initialPrompt).filter((prompt) => prompt !== undefined),
  };
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
