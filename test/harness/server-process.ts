/** The server as a child process: its output by line, its stderr, its exit. */

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerCommand {
  /** What node runs: a file and its arguments. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** How long to wait for output that is still in the pipe after the server has exited. */
const DRAIN_MS = 500;

export class ServerProcess {
  readonly exited: Promise<Exit>;
  /** The server has exited and all its output has been read. */
  readonly drained: Promise<void>;
  /** Called with each complete line of stdout. */
  onLine: (line: string) => void = () => undefined;
  readonly #child: ChildProcessWithoutNullStreams;
  #partialLine = '';
  #stderr = '';

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    // A descendant that holds the pipe open must not hold up the test.
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    this.drained = this.exited.then(() => Promise.race([closed, pause(DRAIN_MS)]));
    child.stdout.setEncoding('utf8').on('data', (piece: string) => this.#takeOutput(piece));
    child.stderr.setEncoding('utf8').on('data', (piece: string) => (this.#stderr += piece));
    // A failed write means that the server has exited, which `exited` reports better.
    child.stdin.on('error', () => undefined);
  }

  static async start({ args, cwd, env }: ServerCommand): Promise<ServerProcess> {
    const child = spawn(process.execPath, args, { cwd, env, stdio: 'pipe', windowsHide: true });
    const server = new ServerProcess(child);
    await once(child, 'spawn');
    return server;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  stderr(): string {
    return this.#stderr;
  }

  /** The end of stdout that has no newline yet. */
  get partialLine(): string {
    return this.#partialLine;
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): void {
    this.#child.kill(signal);
  }

  closeStdin(): void {
    this.#child.stdin.end();
  }

  async write(line: string | Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#child.stdin.write(line, (error) => (error ? reject(error) : resolve()));
    });
  }

  #takeOutput(piece: string): void {
    const lines = (this.#partialLine + piece).split('\n');
    this.#partialLine = lines.pop() ?? '';
    for (const line of lines) this.onLine(line);
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms).unref());
}
