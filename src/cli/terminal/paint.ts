/** Words for a terminal: coloured where colours are shown, plain everywhere else. */
export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export function createPaint(colours: boolean): Paint {
  const style =
    ([open, close]: readonly [number, number]) =>
    (text: string): string =>
      colours ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return {
    bold: style(CODES.bold),
    dim: style(CODES.dim),
    red: style(CODES.red),
    green: style(CODES.green),
    yellow: style(CODES.yellow),
    cyan: style(CODES.cyan),
  };
}
