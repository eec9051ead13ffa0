import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Client } from '@modelcontextprotocol/client';
import type { Settings } from '../../config/load-settings.ts';
import { flagOf, SETTING_KEYS, variableOf } from '../../config/settings-table.ts';
import type { RequestKind } from '../../schema/enums.ts';
import type { CheckAnswer as Answer } from '../../schema/results.ts';

/** A real MCP client, connected to the server that was built from the same sources. */

export interface ServerCommand {
  /** The server, as `node` runs it. */
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The parts of a tool's answer that a rehearsal shows. */
export interface CheckAnswer {
  readonly sessionId: string;
  readonly status: Answer['status'];
  readonly activity?: string;
  readonly events?: readonly { readonly id: number; readonly type: string; readonly data: unknown }[];
  readonly nextCursor?: number;
  readonly actions?: readonly Action[];
  readonly result?: {
    readonly result: string;
    readonly isError: boolean;
    readonly durationMs: number;
    readonly numTurns: number;
    readonly totalCostUsd: number;
  };
}

export interface Action {
  readonly type: RequestKind;
  readonly requestId: string;
  readonly toolName: string;
  readonly input: { readonly command?: string; readonly questions?: readonly Question[] };
  readonly plan?: string;
}

export interface Question {
  readonly question: string;
  readonly options: readonly { readonly label: string; readonly description?: string }[];
}

export class ServerClient {
  readonly #client: Client;
  readonly #stderr: () => string;

  private constructor(client: Client, stderr: () => string) {
    this.#client = client;
    this.#stderr = stderr;
  }

  static async connect({ program, args, cwd, env }: ServerCommand, version: string): Promise<ServerClient> {
    // A server that starts does not load the client.
    const [{ Client }, { StdioClientTransport }] = await Promise.all([
      import('@modelcontextprotocol/client'),
      import('@modelcontextprotocol/client/stdio'),
    ]);
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [program, ...args],
      cwd,
      env: { ...env },
      stderr: 'pipe',
    });
    let said = '';
    transport.stderr?.on('data', (piece: Buffer) => (said += piece.toString()));
    const client = new Client({ name: 'claude-code-mcp-rehearsal', version });
    const connected = new ServerClient(client, () => said.trim());
    try {
      await client.connect(transport);
    } catch (error) {
      await transport.close();
      throw new Error(`The server did not start. ${said.trim()}`, { cause: error });
    }
    return connected;
  }

  async toolNames(): Promise<string[]> {
    const { tools } = await this.#client.listTools();
    return tools.map(({ name }) => name);
  }

  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<CheckAnswer> {
    const answer = await this.#client.callTool({ name, arguments: { ...args } });
    if (answer.isError !== true) return answer.structuredContent as CheckAnswer;
    const [first] = answer.content;
    const said = this.#stderr();
    throw new Error((first?.type === 'text' ? errorOf(first.text) : `${name} failed`) + (said && `\n${said}`));
  }

  /** Sessions first: a closing client gives its server two seconds, and ending a running command may take that long. */
  async close(sessionId: string | undefined): Promise<void> {
    if (sessionId !== undefined) {
      await this.call('claude_code_session', { action: 'cancel', sessionId }).catch(() => undefined);
    }
    await this.#client.close();
  }
}

function errorOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'string' ? error : text;
  } catch {
    return text;
  }
}

/** Where a rehearsal runs: its own directories, and an environment isolated from the user's. */

/** What programs need to run at all, on each platform. */
const NEEDED = ['PATH', 'SYSTEMROOT', 'SYSTEMDRIVE', 'COMSPEC', 'PATHEXT', 'WINDIR', 'PROGRAMFILES', 'PROGRAMDATA'];

export interface World {
  readonly root: string;
  readonly stateDir: string;
  /** For programs that must not see the person's own home. */
  readonly toolEnv: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

export async function createWorld(env: NodeJS.ProcessEnv, parent: string): Promise<World> {
  const root = await realpath(await mkdtemp(path.join(parent, 'ccm-')));
  const home = path.join(root, 'home');
  const temporary = path.join(root, 'tmp');
  for (const directory of [path.join(home, '.claude'), temporary]) await mkdir(directory, { recursive: true });
  return {
    root,
    stateDir: path.join(root, 'state'),
    toolEnv: {
      ...pick(env, (name) => NEEDED.includes(name.toUpperCase())),
      HOME: home,
      USERPROFILE: home,
      TMPDIR: temporary,
      TEMP: temporary,
      TMP: temporary,
      CLAUDE_CONFIG_DIR: path.join(home, '.claude'),
      GIT_CONFIG_NOSYSTEM: '1',
    },
    remove: () => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  };
}

/** The user's environment without the operator's rules: those are for real work and must not change the outcome of a rehearsal. */
export function liveEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const rules = new Set(SETTING_KEYS.map(variableOf));
  return pick(env, (name) => !rules.has(name.toUpperCase()));
}

function pick(env: NodeJS.ProcessEnv, wanted: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && wanted(entry[0])),
  );
}

/** Where programs are; the operator's other rules are for real work. */
export type RehearsalSettings = Pick<Settings, 'executable' | 'gitBashPath'>;

export interface Rehearsal {
  readonly program: string;
  readonly version: string;
  readonly settings: RehearsalSettings;
  readonly stateDir: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the server as a client would, with rules that are the same on every machine, and connects to it. */
export function openRehearsal(rehearsal: Rehearsal): Promise<ServerClient> {
  const { program, version, settings, stateDir, cwd, env } = rehearsal;
  const flags = {
    toolset: 'compact',
    approvals: 'caller',
    logLevel: 'error',
    stateDir,
    executable: settings.executable,
    gitBashPath: settings.gitBashPath,
  } as const;
  const args = (Object.keys(flags) as (keyof typeof flags)[]).flatMap((key) => {
    const value = flags[key];
    return value === undefined ? [] : [flagOf(key), value];
  });
  return ServerClient.connect({ program, args, cwd, env }, version);
}
