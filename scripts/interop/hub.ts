/** A hub for one client, started, restarted and stopped with the commands that users run. */

import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { runProgram } from './programs.ts';

export interface InteropHub {
  readonly url: string;
  /** The environment of its commands, including `install`. */
  readonly env: Record<string, string>;
  command(args: string[], env?: Record<string, string>): Promise<string>;
  /** `hub restart`: with the same flags, so at the same address. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startInteropHub(
  program: string,
  home: string,
  modelEnv: Record<string, string>,
): Promise<InteropHub> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    CLAUDE_CONFIG_DIR: path.join(home, '.claude'),
    CLAUDE_CODE_MCP_STATE_DIR: path.join(home, 'state'),
    CLAUDE_CODE_MCP_AUDIT_LOG: path.join(home, 'audit.jsonl'),
    // Two instances of Claude Code start at once here.
    CLAUDE_CODE_MCP_START_TIMEOUT_MS: '60000',
    ...modelEnv,
  };
  const command = async (args: string[], more: Record<string, string> = {}): Promise<string> => {
    const { code, output } = await runProgram({
      file: process.execPath,
      args: [program, ...args],
      cwd: home,
      env: { ...env, ...more },
    });
    if (code !== 0) throw new Error(`claude-code-mcp ${args.join(' ')}: ${output.slice(-400)}`);
    return output;
  };
  const address = `127.0.0.1:${String(await freePort())}`;
  await command(['hub', 'start', '--listen', address]);
  return {
    url: `http://${address}`,
    env,
    command,
    restart: async () => {
      await command(['hub', 'restart']);
    },
    stop: async () => {
      await command(['hub', 'stop']).catch(() => '');
    },
  };
}

/** Clients keep the address across a restart, so port 0 cannot be used. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
