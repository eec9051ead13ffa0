/**
 * Claude Code processes whose input never ends. With an ordinary pipe a process whose server was killed takes the end of
 * its input for a refusal and asks the model once more. Here the process itself holds a write end of its input, a FIFO,
 * and on Linux the kernel asks it to end when its parent dies, even if the watchdog died with it.
 */

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, close, constants, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { toolEnv } from './system.ts';

export interface ProgramCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

export interface HeldProcess {
  readonly child: ChildProcess & { readonly stdout: Readable; readonly stderr: Readable };
  readonly stdin: Writable;
}

/** Both ends of an input, opened separately: what one process sets on its end must not change the other. */
interface Input {
  readonly childFd: number;
  readonly writeFd: number;
}

const TOOL_TIMEOUT_MS = 2_000;

/** Starts processes for one owner. What it cannot have on this system it does without. */
export class HeldProcesses {
  readonly #platform: NodeJS.Platform;
  /** Made ahead, so that no start waits for it. */
  #ahead: Promise<Input | undefined> | undefined;
  #setpriv: Promise<string | undefined> | undefined;

  constructor(platform: NodeJS.Platform) {
    this.#platform = platform;
  }

  /** From now on the next start finds everything prepared. */
  prepareAhead(): void {
    if (this.#platform === 'win32') return;
    this.#ahead ??= makeInput(os.tmpdir());
    this.#setpriv ??= this.#platform === 'linux' ? findSetpriv() : Promise.resolve(undefined);
  }

  /** For one process that is about to be started. Never rejects. */
  async prepare(): Promise<Preparation> {
    this.prepareAhead();
    const input = this.#ahead;
    this.#ahead = undefined;
    return new Preparation(await input, await this.#setpriv);
  }

  async close(): Promise<void> {
    const input = await this.#ahead;
    this.#ahead = undefined;
    if (input) closeBoth(input);
  }
}

/** An input that no process has yet. */
class Preparation {
  #input: Input | undefined;
  readonly #setpriv: string | undefined;

  constructor(input: Input | undefined, setpriv: string | undefined) {
    this.#input = input;
    this.#setpriv = setpriv;
  }

  /** Throws if the system refuses; that the program does not exist is reported by the child. */
  start(call: ProgramCall): HeldProcess {
    const { command, args } = this.#setpriv !== undefined && isFound(call) ? dying(this.#setpriv, call) : call;
    const input = this.#input;
    this.#input = undefined;
    const child = spawn(command, args, {
      cwd: call.cwd,
      env: call.env,
      stdio: [input?.childFd ?? 'pipe', 'pipe', 'pipe'],
      windowsHide: true,
    }) as HeldProcess['child'];
    const stdin = input ? writerOf(input, child) : child.stdin;
    if (!stdin) throw new Error('The process has no input.');
    return { child, stdin };
  }

  /** There will be no process. */
  discard(): void {
    if (this.#input) closeBoth(this.#input);
    this.#input = undefined;
  }
}

function closeBoth({ childFd, writeFd }: Input): void {
  close(childFd);
  close(writeFd);
}

function writerOf({ childFd, writeFd }: Input, child: ChildProcess): Writable {
  close(childFd);
  const writer = new Socket({ fd: writeFd, readable: false, writable: true });
  // It must not keep the server running once the process is gone.
  child.once('exit', () => writer.destroy());
  child.once('error', () => writer.destroy());
  return writer;
}

/** Node cannot make a FIFO. Its name is gone before anybody uses it. */
async function makeInput(directory: string): Promise<Input | undefined> {
  const fifo = path.join(directory, `ccmcp-${randomUUID()}`);
  if (!(await succeeds('mkfifo', ['-m', '600', fifo]))) return undefined;
  try {
    const childFd = openSync(fifo, constants.O_RDWR);
    try {
      return { childFd, writeFd: openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK) };
    } catch (error) {
      close(childFd);
      throw error;
    }
  } catch {
    return undefined;
  } finally {
    rmSync(fifo, { force: true });
  }
}

/** Asks the program to end when the process that started it does. */
function dying(setpriv: string, { command, args }: ProgramCall): Pick<ProgramCall, 'command' | 'args'> {
  return { command: setpriv, args: ['--pdeathsig', 'TERM', '--', command, ...args] };
}

/** The one of BusyBox does not know the option. */
async function findSetpriv(): Promise<string | undefined> {
  for (const file of ['/usr/bin/setpriv', '/bin/setpriv', '/run/current-system/sw/bin/setpriv'])
    if (isExecutable(file) && (await succeeds(file, ['--pdeathsig', 'TERM', '--', 'true']))) return file;
  return undefined;
}

/** One that does not exist is started without a detour, so that the error names it. */
function isFound({ command, cwd, env }: ProgramCall): boolean {
  if (command.includes('/')) return isExecutable(path.resolve(cwd ?? '.', command));
  return (env['PATH'] ?? '').split(':').some((directory) => isExecutable(path.join(directory, command)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function succeeds(file: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { env: toolEnv(process.platform), timeout: TOOL_TIMEOUT_MS, windowsHide: true };
    execFile(file, [...args], options, (error) => resolve(error === null));
  });
}
