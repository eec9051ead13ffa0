/** The supported clients, where each keeps its servers, and in which format. */

import { existsSync } from 'node:fs';
import { pathsOf, type Host } from '../../config/host.ts';
import { jsonFormat, tomlFormat, type ConfigFormat } from './config-format.ts';
import { readMember } from './edit-json.ts';

export interface InstallClient {
  readonly title: string;
  readonly format: ConfigFormat;
  /** The user-level configuration file. */
  file(host: Host): string;
  /** What the user has to do for the client to pick it up. */
  readonly nextStep: string;
}

const mcpServers = (): readonly string[] => ['mcpServers'];
const typedHttp = (url: string): Record<string, unknown> => ({ type: 'http', url });

export const CLIENTS = {
  'claude-code': {
    title: 'Claude Code',
    format: jsonFormat({ servers: mcpServers, extraFields: { type: 'stdio' }, http: typedHttp }),
    // Beside the configuration directory, unless that was moved.
    file: (host) => join(host, given(host, 'CLAUDE_CONFIG_DIR') ?? host.homedir, '.claude.json'),
    nextStep: 'Start a new session; /mcp shows the server.',
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    format: jsonFormat({ servers: mcpServers }),
    file: (host) => join(host, applicationData(host), 'Claude', 'claude_desktop_config.json'),
    nextStep: 'Quit and reopen Claude Desktop.',
  },
  cursor: {
    title: 'Cursor',
    format: jsonFormat({ servers: mcpServers, extraFields: { type: 'stdio' }, http: (url) => ({ url }) }),
    file: (host) => join(host, host.homedir, '.cursor', 'mcp.json'),
    nextStep: 'Cursor asks to enable the new server, or see Settings, MCP.',
  },
  vscode: {
    title: 'VS Code',
    format: jsonFormat({ servers: () => ['servers'], extraFields: { type: 'stdio' }, http: typedHttp }),
    file: (host) => join(host, applicationData(host), 'Code', 'User', 'mcp.json'),
    nextStep: 'Run "MCP: List Servers" and start it there.',
  },
  codex: {
    title: 'Codex',
    format: tomlFormat('mcp_servers'),
    file: (host) => join(host, given(host, 'CODEX_HOME') ?? join(host, host.homedir, '.codex'), 'config.toml'),
    nextStep: 'Restart Codex; /mcp shows the server.',
  },
  gemini: {
    title: 'Gemini CLI',
    // Its `url` means the older transport.
    format: jsonFormat({ servers: mcpServers, http: (httpUrl) => ({ httpUrl }) }),
    file: (host) => join(host, host.homedir, '.gemini', 'settings.json'),
    nextStep: 'Restart Gemini CLI; /mcp shows the server.',
  },
  copilot: {
    title: 'Copilot CLI',
    format: jsonFormat({
      servers: mcpServers,
      extraFields: { type: 'local', tools: ['*'] },
      http: (url) => ({ type: 'http', tools: ['*'], url }),
    }),
    file: (host) => join(host, given(host, 'COPILOT_HOME') ?? join(host, host.homedir, '.copilot'), 'mcp-config.json'),
    nextStep: 'Restart Copilot CLI; /mcp show lists the server.',
  },
  opencode: {
    title: 'opencode',
    format: jsonFormat({
      // Version 2 has the servers one level deeper; a file that has them there says which it is.
      servers: (text) => (isObject(readMember(text, ['mcp', 'servers'])) ? ['mcp', 'servers'] : ['mcp']),
      commandIsList: true,
      extraFields: { type: 'local', enabled: true },
      // It would otherwise try to sign in by OAuth when the hub is unavailable.
      http: (url) => ({ type: 'remote', enabled: true, oauth: false, url }),
      initialText: '{\n  "$schema": "https://opencode.ai/config.json"\n}\n',
    }),
    file: (host) => firstExisting(host, ['opencode.jsonc', 'opencode.json']),
    nextStep: 'Restart opencode; opencode mcp list shows the server.',
  },
} as const satisfies Record<string, InstallClient>;

export type ClientName = keyof typeof CLIENTS;

function join(host: Host, ...parts: string[]): string {
  return pathsOf(host).join(...parts);
}

function given({ env }: Host, variable: string): string | undefined {
  const value = env[variable];
  return value === '' ? undefined : value;
}

/** Where desktop apps keep per-user data. */
function applicationData(host: Host): string {
  switch (host.platform) {
    case 'win32':
      return given(host, 'APPDATA') ?? join(host, host.homedir, 'AppData', 'Roaming');
    case 'darwin':
      return join(host, host.homedir, 'Library', 'Application Support');
    default:
      return given(host, 'XDG_CONFIG_HOME') ?? join(host, host.homedir, '.config');
  }
}

/** opencode uses the same path on every platform. */
function firstExisting(host: Host, names: readonly string[]): string {
  const directory = join(host, given(host, 'XDG_CONFIG_HOME') ?? join(host, host.homedir, '.config'), 'opencode');
  const files = names.map((name) => join(host, directory, name));
  return files.find((file) => existsSync(file)) ?? join(host, directory, 'opencode.json');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !('type' in value) && !('command' in value);
}
