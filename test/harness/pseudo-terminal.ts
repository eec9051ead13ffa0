/** The command at a real terminal, as a person uses it: util-linux's `script` provides the pseudo-terminal. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { builtServer } from './built-server.ts';
import { eventually } from './eventually.ts';

export const HAS_TERMINALS = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

export interface TerminalSetup {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly columns?: number;
  readonly rows?: number;
}

export class PseudoTerminal {
  readonly #child: ChildProcess;
  readonly exited: Promise<number>;
  #output = '';
  /** Up to where `shows` has read. */
  #read = 0;
  #device = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => (this.#output += piece));
    child.stdin?.on('error', () => undefined);
    this.exited = once(child, 'close').then(([code]) => code as number);
  }

  /** Ended with the test. */
  static async run(args: readonly string[], setup: TerminalSetup): Promise<PseudoTerminal> {
    const { env, cwd, columns = 100, rows = 40 } = setup;
    const words = [process.execPath, builtServer(), ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    const script = `tty; stty cols ${String(columns)} rows ${String(rows)}; exec ${words.join(' ')}`;
    const child = spawn('script', ['--quiet', '--flush', '--return', '--command', script, '/dev/null'], {
      cwd,
      env: { TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
      stdio: 'pipe',
    });
    const terminal = new PseudoTerminal(child);
    onTestFinished(async () => {
      child.kill();
      await terminal.exited;
    });
    [, terminal.#device = ''] = await terminal.shows(/^(\/dev\/\S+)\r\n/);
    return terminal;
  }

  /** Everything shown so far, with colours and cursor movements. */
  get output(): string {
    return this.#output;
  }

  /** Waits until this is shown after what was waited for before. */
  async shows(what: string | RegExp): Promise<RegExpExecArray> {
    const pattern = typeof what === 'string' ? new RegExp(what.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')) : what;
    const look = (): RegExpExecArray => {
      const found = pattern.exec(this.#output.slice(this.#read));
      if (!found) throw new Error(`instead:\n${this.#output.slice(this.#read)}`);
      return found;
    };
    const found = await eventually(look, { what: `the terminal shows ${String(what)}` });
    this.#read += found.index + found[0].length;
    return found;
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  /** No key will be pressed any more. */
  end(): void {
    this.#child.stdin?.end();
  }

  /** As dragging the corner of the window does. */
  resize(columns: number): void {
    spawnSync('stty', ['-F', this.#device, 'cols', String(columns)]);
  }
}
