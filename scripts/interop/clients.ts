/** A real client at a pinned version, and how to drive a complete task through it. */
export interface Client {
  name: string;
  package: string | undefined;
  /** Other packages that have to be installed with it. */
  alongside?: readonly string[];
  /** Version of Node the client needs, if not the running one. */
  node?: string;
  drive: LibraryDrive | ModelDrive;
  /** Its name for `install --http`; a library is given the address and the token. */
  http?: 'library' | 'claude-code' | 'codex' | 'copilot' | 'opencode';
  /** Settings that the hub needs for it. */
  hubEnv?: Record<string, string>;
  /** Why it is known not to finish the task over HTTP. */
  httpLimit?: string;
}

/** The client is a library or has its own interface for calling tools: a small program of ours calls them. */
export interface LibraryDrive {
  kind: 'library';
  program: string;
}

/** The client is an agent: its model is scripted, and calls the tools as our instructions say. */
export interface ModelDrive {
  kind: 'model';
  command: (place: Place) => Command;
}

/** A server that the client starts. */
export interface StdioServer {
  command: string;
  args: string[];
  env: Record<string, string>;
}

export interface Place {
  install: string;
  home: string;
  project: string;
  /** Undefined for a client that has an entry for the hub in its own configuration. */
  server: StdioServer | undefined;
  model: { url: string; env: Record<string, string> };
  prompt: string;
}

export interface Command {
  file: string;
  args: string[];
  env: Record<string, string>;
  files?: Record<string, string>;
}

export const NODE_24 = '24.21.0';

export const CLIENTS: readonly Client[] = [
  { name: 'Claude Code', package: undefined, drive: { kind: 'model', command: claudeCode }, http: 'claude-code' },
  {
    name: 'Codex (app-server)',
    package: '@openai/codex@0.166.0',
    drive: { kind: 'library', program: 'codex.mjs' },
    http: 'codex',
  },
  {
    name: 'Copilot CLI',
    package: '@github/copilot@1.0.102',
    drive: { kind: 'model', command: copilot },
    http: 'copilot',
    hubEnv: { CLAUDE_CODE_MCP_APPROVALS: 'caller' },
    httpLimit: 'after the interrupted call its model has no access to the tools until the client is restarted',
  },
  { name: 'opencode', package: 'opencode-ai@1.18.33', drive: { kind: 'model', command: opencode }, http: 'opencode' },
  {
    name: 'OpenAI Agents SDK',
    package: '@openai/agents@0.20.0',
    drive: { kind: 'library', program: 'openai-agents.mjs' },
    http: 'library',
  },
  {
    name: 'MCP TypeScript SDK 1',
    package: '@modelcontextprotocol/sdk@1.32.2',
    drive: { kind: 'library', program: 'typescript-sdk.mjs' },
    http: 'library',
  },
  {
    name: 'MCP TypeScript SDK 2',
    package: '@modelcontextprotocol/client@2.4.0',
    drive: { kind: 'library', program: 'typescript-sdk-2.mjs' },
    http: 'library',
  },
  {
    name: 'AI SDK',
    package: '@ai-sdk/mcp@2.0.93',
    node: NODE_24,
    drive: { kind: 'library', program: 'ai-sdk.mjs' },
    http: 'library',
  },
  {
    name: 'LangChain adapters',
    package: '@langchain/mcp-adapters@1.1.4',
    // The newest one that it would take needs a version of another package that is not there yet.
    alongside: ['@langchain/langgraph@1.4.10'],
    drive: { kind: 'library', program: 'langchain.mjs' },
    http: 'library',
  },
  {
    name: 'mcporter',
    package: 'mcporter@0.12.3',
    node: NODE_24,
    drive: { kind: 'library', program: 'mcporter.mjs' },
    http: 'library',
  },
  {
    name: 'MCP Inspector (command line)',
    package: '@modelcontextprotocol/inspector@2.12.0',
    node: NODE_24,
    drive: { kind: 'library', program: 'inspector.mjs' },
  },
];

function claudeCode({ install, server, model, prompt }: Place): Command {
  const config = JSON.stringify({ mcpServers: { 'claude-code': server } });
  const given = server ? ['--mcp-config', config, '--strict-mcp-config'] : [];
  const resources = ['ListMcpResourcesTool', 'ReadMcpResourceTool'];
  return {
    file: install,
    args: ['-p', prompt, ...given, '--allowedTools', 'mcp__claude-code', ...(server ? [] : resources)],
    env: model.env,
  };
}

function copilot({ install, home, server, model, prompt }: Place): Command {
  const config = { mcpServers: { 'claude-code': { type: 'local', ...server, tools: ['*'], timeout: 60_000 } } };
  return {
    file: `${install}/node_modules/.bin/copilot`,
    args: ['-p', prompt, '--allow-all-tools', '--disable-builtin-mcps', '--no-color'],
    env: {
      COPILOT_PROVIDER_BASE_URL: model.url,
      COPILOT_PROVIDER_TYPE: 'anthropic',
      COPILOT_PROVIDER_API_KEY: 'scripted',
      COPILOT_MODEL: 'claude-sonnet-4',
      COPILOT_AUTO_UPDATE: 'false',
    },
    ...(server && { files: { [`${home}/.copilot/mcp-config.json`]: JSON.stringify(config) } }),
  };
}

function opencode({ install, home, server, model, prompt }: Place): Command {
  const mcp = server && {
    'claude-code': {
      type: 'local',
      command: [server.command, ...server.args],
      environment: server.env,
      timeout: 60_000,
    },
  };
  const config = {
    autoupdate: false,
    model: 'anthropic/claude-sonnet-4-5',
    small_model: 'anthropic/claude-sonnet-4-5',
    provider: { anthropic: { options: { baseURL: `${model.url}/v1`, apiKey: 'scripted' } } },
    ...(mcp && { mcp }),
    permission: { '*': 'allow' },
  };
  return {
    file: `${install}/node_modules/.bin/opencode`,
    args: ['run', prompt],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' },
    files: { [`${home}/.config/opencode/opencode.json`]: JSON.stringify(config) },
  };
}
