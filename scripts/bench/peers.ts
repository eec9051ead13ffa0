/** Other servers at pinned versions, installed from the registry into a directory that is removed afterwards. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

export interface PeerCommand {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly isNative: boolean;
  readonly note: string;
  readonly opening?: { readonly request: object; readonly isLast: true };
}

const PINNED = {
  '@steipete/claude-code-mcp': '1.10.12',
  '@openai/codex': '0.153.0',
  '@agentclientprotocol/claude-agent-acp': '0.99.0',
} as const;

const ACP_OPENING = {
  isLast: true,
  request: { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } },
} as const;

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
  const isAcp = name.endsWith('acp');
  return {
    name: `${name} ${version}`,
    file: process.execPath,
    args: [path.join(own, script)],
    isNative: false,
    note: isAcp ? 'ACP, not MCP: start to the answer of initialize' : 'one tool, one process per call',
    ...(isAcp && { opening: ACP_OPENING }),
  };
}

/** The Claude Code bundled with the Agent SDK. */
function claudeServe(): PeerCommand {
  const require = createRequire(import.meta.url);
  const sdk = createRequire(require.resolve('@anthropic-ai/claude-agent-sdk'));
  const binary = process.platform === 'win32' ? 'claude.exe' : 'claude';
  const packages = [`${process.platform}-${process.arch}`, `${process.platform}-${process.arch}-musl`];
  for (const name of packages) {
    try {
      const file = sdk.resolve(`@anthropic-ai/claude-agent-sdk-${name}/${binary}`);
      return {
        name: 'claude mcp serve',
        file,
        args: ['mcp', 'serve'],
        isNative: false,
        note: 'raw tools, no sessions',
      };
    } catch {
      // The package of another platform.
    }
  }
  throw new Error('The bundled Claude Code was not found.');
}

async function findFile(directory: string, name: RegExp): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const found = entries.find((entry) => entry.isFile() && name.test(entry.name));
  if (!found) throw new Error('its native program was not found');
  return path.join(found.parentPath, found.name);
}
