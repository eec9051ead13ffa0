/** Other servers at pinned versions, installed from the registry into a directory that is removed afterwards. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { bundledClaudeCode } from '../../src/driver/claude-code-program.ts';

export interface PeerCommand {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly isNative: boolean;
  readonly note: string;
  readonly opening?: { readonly request: object; readonly isLast: true };
  /** The call that has Claude Code do something, if there is one. */
  readonly job?: (prompt: string, cwd: string) => { name: string; arguments: Record<string, unknown> };
}

const PINNED = {
  '@steipete/claude-code-mcp': '1.10.12',
  '@botanicastudios/claude-code-mcp': '1.10.19',
  'claude-code-mcp': '0.0.4',
  'claude-agent-mcp': '1.3.0',
  '@openai/codex': '0.153.0',
  '@agentclientprotocol/claude-agent-acp': '0.99.0',
} as const;

const ABOUT: Readonly<Record<string, Pick<PeerCommand, 'note' | 'job' | 'opening'>>> = {
  '@steipete/claude-code-mcp': {
    note: 'one tool, one process per call',
    job: (prompt, cwd) => ({ name: 'claude_code', arguments: { prompt, workFolder: cwd } }),
  },
  '@botanicastudios/claude-code-mcp': {
    note: 'one tool, one process per call',
    job: (prompt) => ({ name: 'claude_code', arguments: { prompt, clearContext: true } }),
  },
  'claude-code-mcp': {
    note: 'another package of that name: one tool, edits accepted',
    job: (prompt, cwd) => ({ name: 'task', arguments: { task: prompt, cwd } }),
  },
  'claude-agent-mcp': {
    note: 'ten tools, one process per session',
    job: (prompt, cwd) => ({ name: 'claude_direct_query', arguments: { prompt, cwd } }),
  },
  '@agentclientprotocol/claude-agent-acp': {
    note: 'ACP, not MCP: start to the answer of initialize',
    opening: {
      isLast: true,
      request: { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } },
    },
  },
};

export interface Peers extends AsyncDisposable {
  readonly commands: readonly PeerCommand[];
  readonly problems: readonly string[];
}

export async function installPeers(): Promise<Peers> {
  const directory = await mkdtemp(path.join(tmpdir(), 'ccm-peers-'));
  const commands: PeerCommand[] = [claudeServe()];
  const problems: string[] = [];
  for (const [index, [name, version]] of Object.entries(PINNED).entries()) {
    // Each in its own directory: npm would remove the packages of the previous one.
    const place = path.join(directory, String(index));
    try {
      await mkdir(place);
      await writeFile(path.join(place, 'package.json'), '{"private":true}');
      await npm(place, `${name}@${version}`);
      commands.push(await commandOf(name, version, place));
    } catch (error) {
      problems.push(`${name}@${version}: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`);
    }
  }
  return {
    commands,
    problems,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/** Also installs packages that ask for a newer Node, since they may run anyway. */
async function npm(cwd: string, spec: string): Promise<void> {
  const args = [
    'install',
    '--no-audit',
    '--no-fund',
    '--no-save',
    '--ignore-scripts',
    '--no-engine-strict',
    '--prefix',
    cwd,
    spec,
  ];
  await promisify(execFile)('npm', args, { cwd, timeout: 180_000, shell: process.platform === 'win32' });
}

async function commandOf(name: string, version: string, directory: string): Promise<PeerCommand> {
  const own = path.join(directory, 'node_modules', name);
  if (name === '@openai/codex') {
    const file = await findFile(path.join(directory, 'node_modules', '@openai'), /^codex(\.exe)?$/);
    return { name: `${name} ${version} mcp-server`, file, args: ['mcp-server'], isNative: true, note: 'native' };
  }
  const { bin } = createRequire(import.meta.url)(path.join(own, 'package.json')) as {
    bin: string | Record<string, string>;
  };
  const script = typeof bin === 'string' ? bin : (Object.values(bin)[0] ?? '');
  return {
    name: `${name} ${version}`,
    file: process.execPath,
    args: [path.join(own, script)],
    isNative: false,
    note: '',
    ...ABOUT[name],
  };
}

function claudeServe(): PeerCommand {
  return {
    name: 'claude mcp serve',
    file: bundledClaude(),
    args: ['mcp', 'serve'],
    isNative: false,
    note: 'raw tools, no sessions',
  };
}

/** The Claude Code bundled with the Agent SDK. */
export function bundledClaude(): string {
  const bundled = bundledClaudeCode(process.platform, process.arch);
  if (bundled?.executable === undefined) throw new Error('The bundled Claude Code was not found.');
  return bundled.executable;
}

async function findFile(directory: string, name: RegExp): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const found = entries.find((entry) => entry.isFile() && name.test(entry.name));
  if (!found) throw new Error('its native program was not found');
  return path.join(found.parentPath, found.name);
}
