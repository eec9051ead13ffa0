import type { Writable } from 'node:stream';
import type { StartedChild } from '../platform/process-home.ts';
import { KeptLines, MAX_KEPT_BYTES } from './kept-lines.ts';
import type { ExitState, KeptRunState } from './protocol.ts';

/** What a hub that is connected learns of a run. */
export interface RunReader {
  line(run: string, line: number, bytes: Buffer): void;
  stderr(run: string, text: string): void;
  exit(run: string, exit: ExitState): void;
}

/** Ids of written messages that are remembered; a hub repeats only what it has not seen taken up. */
const MAX_REMEMBERED = 10_000;
const MAX_STDERR_CHARS = 16 * 1024;
const LAST_WORDS_MS = 1_000;

/** One process with its pipes, whoever reads them. */
export class KeptRun {
  readonly id: string;
  readonly #label: string;
  readonly #child: StartedChild['child'];
  readonly #stdin: Writable;
  readonly #lines = new KeptLines();
  readonly #written = new Set<string>();
  #stderr = '';
  #exit: ExitState | undefined;
  #reader: RunReader | undefined;
  #held: ReadonlySet<number> = new Set();
  #delivered = 0;
  #seen = 0;
  #suspect: KeptRunState['suspect'];

  constructor(id: string, label: string, { child, stdin }: StartedChild) {
    this.id = id;
    this.#label = label;
    this.#child = child;
    this.#stdin = stdin;
    stdin.on('error', () => undefined);
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.#takeStderr(text));
    const ended = (code: number | null, signal: NodeJS.Signals | null): void => {
      if (this.#exit) return;
      this.#deliver(this.#lines.end());
      this.#exit = { code, signal };
      this.#reader?.exit(this.id, this.#exit);
    };
    // What it wrote last may not have been read by the time it exits; what it left behind may keep its output open.
    child.once('close', ended);
    child.once('exit', (code: number | null, signal: NodeJS.Signals | null) =>
      setTimeout(() => ended(code, signal), LAST_WORDS_MS).unref(),
    );
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get label(): string {
    return this.#label;
  }

  get isGone(): boolean {
    return this.#exit !== undefined;
  }

  get state(): KeptRunState {
    return {
      run: this.id,
      label: this.#label,
      ...(this.pid !== undefined && !this.isGone && { pid: this.pid }),
      ...(this.#exit && { exit: this.#exit }),
      ...(this.#suspect && { suspect: this.#suspect }),
    };
  }

  /** From now on everything beyond this line goes to the reader. */
  read(after: number, reader: RunReader): void {
    this.#reader = reader;
    this.#lines.drop(after, this.#held);
    this.#seen = Math.max(this.#seen, after);
    if (this.#stderr !== '') reader.stderr(this.id, this.#stderr);
    this.#deliver(this.#lines.after(after, this.#held));
    if (this.#exit) reader.exit(this.id, this.#exit);
    this.#pace();
  }

  acknowledge(stored: number, seen: number, held: readonly number[]): void {
    this.#held = new Set(held);
    this.#seen = Math.max(this.#seen, seen);
    this.#lines.drop(stored, this.#held);
    this.#pace();
  }

  /** Nobody reads any more. A hub that died without a word may have died of the first line that it had not coped with. */
  unread(how: 'left' | 'died'): void {
    const line = this.#seen + 1;
    if (how === 'died' && this.#reader && line <= this.#delivered)
      this.#suspect = { line, deaths: this.#suspect?.line === line ? this.#suspect.deaths + 1 : 1 };
    this.#reader = undefined;
    this.#delivered = 0;
    this.#pace();
  }

  /** Writes a line unless one with this id was written before. */
  write(id: string, bytes: Buffer): void {
    if (id !== '') {
      if (this.#written.has(id)) return;
      this.#written.add(id);
      if (this.#written.size > MAX_REMEMBERED) this.#written.delete(this.#written.values().next().value ?? '');
    }
    if (!this.isGone) this.#stdin.write(bytes);
  }

  #take(chunk: Buffer): void {
    this.#deliver(this.#lines.take(chunk));
    this.#pace();
  }

  #takeStderr(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARS);
    this.#reader?.stderr(this.id, text);
  }

  #deliver(lines: readonly { readonly line: number; readonly bytes: Buffer }[]): void {
    if (!this.#reader) return;
    for (const { line, bytes } of lines) {
      this.#reader.line(this.id, line, bytes);
      this.#delivered = Math.max(this.#delivered, line);
    }
  }

  /** A single line may be longer than the limit: it passes once everything before it is done with. */
  #pace(): void {
    const mustWait = this.#lines.bytes >= MAX_KEPT_BYTES && !(this.#reader && this.#lines.size === 0);
    if (mustWait) this.#child.stdout.pause();
    else this.#child.stdout.resume();
  }
}
