import { createInterface } from 'node:readline/promises';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { styleText } from 'node:util';

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

/** What interactive commands write to and ask on. */
export interface Terminal {
  readonly paint: Paint;
  /** Whether lines can be redrawn. */
  readonly isLive: boolean;
  readonly columns: number;
  /** Undefined where the height is not known. */
  readonly rows: number | undefined;
  /** Whether someone can answer. */
  readonly canAsk: boolean;
  write(text: string): void;
  writeError(text: string): void;
  ask(question: string): Promise<string>;
  /** One key as it is pressed, without echo. Ctrl-C is `interrupt`, the end of the input `end`. */
  key(): Promise<string>;
  /** Drops what was typed before now. False if there was a Ctrl-C or the end of the input in it. */
  dropTyped(): Promise<boolean>;
}

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
/** What Linux makes of a Ctrl-D that came before single keys were read. */
const EARLIER_CTRL_D = '\u0000';

export function openTerminal(): Terminal {
  const { stdin, stdout } = process;
  const isLive = stdout.isTTY && stdout.hasColors();
  return {
    paint: createPaint(isLive),
    isLive,
    canAsk: isTerminal(stdin) && isTerminal(stdout),
    get columns() {
      // 0 where the terminal does not know its size.
      return stdout.columns > 0 ? stdout.columns : 80;
    },
    get rows() {
      return stdout.rows > 0 ? stdout.rows : undefined;
    },
    write: (text) => void stdout.write(text),
    writeError: (text) => void process.stderr.write(text),
    key: pressedKey,
    dropTyped,
    async ask(question) {
      const lines = createInterface({ input: stdin, output: stdout });
      // While asking, readline swallows Ctrl-C; without the close handler, an input that ends would leave the question open forever.
      lines.on('SIGINT', () => {
        process.kill(process.pid, 'SIGINT');
        lines.close();
      });
      const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
      try {
        return (await Promise.race([lines.question(question), ended])).trim();
      } finally {
        lines.close();
      }
    },
  };
}

/** Undefined where it is not a terminal, whatever its type says. */
function isTerminal({ isTTY = false }: { readonly isTTY?: boolean }): boolean {
  return isTTY;
}

/** Anything typed ahead stays in the stream for the next question. */
async function pressedKey(): Promise<string> {
  const { stdin } = process;
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  try {
    const text = await new Promise<string>((resolve) => {
      const read = (piece: string): void => done(piece);
      const ended = (): void => done(CTRL_D);
      const done = (piece: string): void => {
        stdin.off('data', read).off('end', ended);
        stdin.pause();
        resolve(piece);
      };
      stdin.on('data', read).on('end', ended);
      stdin.resume();
    });
    // An arrow or a function key arrives as one sequence, which must not be taken for an escape and letters.
    const key = text.startsWith('\u001b') ? text : (Array.from(text)[0] ?? CTRL_D);
    if (text.length > key.length) stdin.unshift(text.slice(key.length));
    return key === CTRL_C ? 'interrupt' : key === CTRL_D || key === EARLIER_CTRL_D ? 'end' : key;
  } finally {
    stdin.setRawMode(false);
  }
}

/** What the terminal holds arrives as soon as it is read. */
const TYPED_WITHIN_MS = 20;

async function dropTyped(): Promise<boolean> {
  const { stdin } = process;
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  let typed = '';
  const read = (piece: string): void => void (typed += piece);
  stdin.on('data', read);
  stdin.resume();
  await pause(TYPED_WITHIN_MS);
  // On a busy machine the time may be up before the terminal was read once.
  await nextTurn();
  stdin.off('data', read);
  stdin.pause();
  stdin.setRawMode(false);
  return ![CTRL_C, CTRL_D, EARLIER_CTRL_D].some((key) => typed.includes(key));
}

/** A line in rows that fit. Each but the first starts with a bar, so that none can pass for a line of a command. */
export function rowsOf(line: string, columns: number): string[] {
  const width = Math.max(MIN_COLUMNS, columns);
  const rows: string[] = [];
  let [row, used] = ['', 0];
  // eslint-disable-next-line no-control-regex
  for (const piece of line.match(/\u001b\[[\d;]*m|./gsu) ?? []) {
    // What lies beyond ASCII may be two columns wide.
    const takes = piece.startsWith('\u001b') ? 0 : piece < '\u0080' ? 1 : 2;
    if (used + takes > width) {
      rows.push(row);
      [row, used] = [BAR, BAR.length];
    }
    row += piece;
    used += takes;
  }
  return [...rows, row];
}

const MIN_COLUMNS = 10;
const BAR = '│ ';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** For work that cleans up after itself: the first signal asks it to stop, a second one kills the process as usual. */
export async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

export async function askYesNo(terminal: Terminal, question: string): Promise<boolean> {
  return /^(y|yes)$/i.test(await terminal.ask(`${question} [y/N] `));
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** Styles text for a terminal that shows colours; returns it unchanged for anything else. */
export type Paint = Readonly<Record<Style, (text: string) => string>>;

export function createPaint(colours: boolean): Paint {
  const style =
    (format: Style) =>
    (text: string): string =>
      // Whether to style was decided when the terminal was opened, also for NO_COLOR.
      colours ? styleText(format, text, { validateStream: false }) : text;
  return {
    bold: style('bold'),
    dim: style('dim'),
    red: style('red'),
    green: style('green'),
    yellow: style('yellow'),
    cyan: style('cyan'),
  };
}
