import type { Terminal } from './terminal.ts';

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const FRAME_MS = 90;

/** Permanent lines, and below them a status line. Without a live terminal there is no status line. */
export class Screen {
  readonly #terminal: Terminal;
  #now = '';
  #frame = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Columns of the status line as it was drawn. */
  #drawn = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  line(text = ''): void {
    this.#clear();
    this.#terminal.write(`${text}\n`);
    this.#draw();
  }

  /** Sets the status line; an empty text clears it. */
  now(text: string): void {
    this.#now = text;
    if (!this.#terminal.isLive) return;
    if (text === '') {
      this.#clear();
      clearInterval(this.#timer);
      this.#timer = undefined;
    } else {
      this.#timer ??= setInterval(() => this.#draw(), FRAME_MS).unref();
      this.#draw();
    }
  }

  #clear(): void {
    if (this.#drawn === 0) return;
    // In a window that has become narrower, it now takes several lines.
    const above = Math.ceil(this.#drawn / Math.max(1, this.#terminal.columns)) - 1;
    this.#terminal.write(`${above > 0 ? `\u001b[${String(above)}A` : ''}\r\u001b[J`);
    this.#drawn = 0;
  }

  #draw(): void {
    if (!this.#timer) return;
    const { paint, columns } = this.#terminal;
    const spinner = FRAMES[this.#frame++ % FRAMES.length] ?? '';
    const room = Math.max(10, columns - 5);
    const shown = this.#now.length > room ? `${this.#now.slice(0, room - 1)}…` : this.#now;
    this.#clear();
    this.#drawn = shown.length + 4;
    this.#terminal.write(`  ${paint.cyan(spinner)} ${paint.dim(shown)}`);
  }
}
