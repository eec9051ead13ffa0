/** From the start of a process to its answer to tools/list, as a client that waits for `initialize` sees it. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The first message, if the protocol is not MCP. */
  readonly opening?: { readonly request: object; readonly isLast: true };
}

export interface Start {
  readonly ms: number;
  /** Size of the answer to tools/list. */
  readonly bytes: number;
}

const TIMEOUT_MS = 30_000;

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } },
};

export async function startToList({ file, args, cwd, env, opening }: Command): Promise<Start> {
  const begin = performance.now();
  const child = spawn(file, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => undefined);
  const exited = once(child, 'exit');
  const send = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  try {
    send(opening?.request ?? INITIALIZE);
    for await (const line of createInterface({ input: child.stdout })) {
      const message = parse(line);
      if (message?.id === 1 && opening === undefined) {
        send({ jsonrpc: '2.0', method: 'notifications/initialized' });
        send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
      } else if (message?.id === 2 || (message?.id === 1 && opening)) {
        return { ms: performance.now() - begin, bytes: Buffer.byteLength(line) };
      }
    }
    throw new Error(`${file} ${args.join(' ')} exited without an answer`);
  } finally {
    child.stdin.end();
    // Not all peers exit when their input ends; the measurement is already done.
    const killTimer = setTimeout(() => child.kill('SIGKILL'), 3_000);
    await exited;
    clearTimeout(killTimer);
    clearTimeout(timer);
  }
}

function parse(line: string): { id?: unknown } | undefined {
  try {
    return JSON.parse(line) as { id?: unknown };
  } catch {
    return undefined;
  }
}

/** The same for a program that only has to exit. */
export async function startToEnd({ file, args, cwd, env }: Command): Promise<number> {
  const begin = performance.now();
  await once(spawn(file, args, { cwd, env, stdio: 'ignore' }), 'exit');
  return performance.now() - begin;
}
