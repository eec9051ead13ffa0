/** A real MCP client, connected to the server that was built from the same sources. */

import type { Client } from '@modelcontextprotocol/client';
import type { RequestKind } from '../../schema/enums.ts';
import type { CheckAnswer as Answer } from '../../schema/results.ts';

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
