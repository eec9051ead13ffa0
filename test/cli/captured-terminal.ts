import { createPaint, type Terminal } from '../../src/cli/terminal/terminal.ts';

export interface CapturedTerminal extends Terminal {
  readonly text: string;
  readonly asked: readonly string[];
}

/** A terminal whose user gives these answers in order; without answers, it is not interactive. */
export function captureTerminal(answers: readonly string[] = [], keys: readonly string[] = []): CapturedTerminal {
  const left = [...answers];
  const pressed = [...keys];
  const asked: string[] = [];
  let text = '';
  return {
    paint: createPaint(false),
    isLive: false,
    columns: 80,
    rows: undefined,
    canAsk: answers.length > 0,
    asked,
    get text() {
      return text;
    },
    write: (written) => void (text += written),
    writeError: (written) => void (text += written),
    key: () => Promise.resolve(pressed.shift() ?? 'end'),
    dropTyped: () => Promise.resolve(true),
    async ask(question) {
      asked.push(question);
      const answer = left.shift();
      if (answer === undefined) throw new Error(`No answer prepared for: ${question}`);
      return answer;
    },
  };
}
