import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';

/** What interactive commands write to and ask on. */
export interface Terminal {
  readonly paint: Paint;
  /** Whether lines can be redrawn. */
  readonly isLive: boolean;
  readonly columns: number;
  /** Whether someone can answer. */
  readonly canAsk: boolean;
  write(text: string): void;
  ask(question: string): Promise<string>;
}

export function openTerminal(): Terminal {
  const { stdin, stdout } = process;
  const isLive = stdout.isTTY && stdout.hasColors();
  return {
    paint: createPaint(isLive),
    isLive,
    canAsk: stdin.isTTY && stdout.isTTY,
    get columns() {
      return stdout.columns ?? 80;
    },
    write: (text) => void stdout.write(text),
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
