import { styleText } from 'node:util';

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
