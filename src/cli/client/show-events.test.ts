import { expect, test } from 'vitest';
import type { ApiEvent } from '../../schema/api-events.ts';
import type { EventBody } from '../../schema/events.ts';
import { createPaint } from '../terminal/terminal.ts';
import { eventLines, UnfinishedText } from './show-events.ts';

const paint = createPaint(false);
const event = (data: EventBody): ApiEvent => ({ id: 1, timestamp: '', data }) as ApiEvent;
const says = (text: string): ApiEvent =>
  event({ kind: 'message', role: 'assistant', blocks: [{ kind: 'text', text }] } as unknown as EventBody);
const RESULT = event({
  kind: 'result',
  result: { interrupted: true, numTurns: 1, durationMs: 0, text: '' },
} as unknown as EventBody);

/** What is shown, in order: pieces of text as [position, text], and events. */
function shown(...steps: (readonly [at: number, text: string] | ApiEvent)[]): string[] {
  const unfinished = new UnfinishedText(paint);
  return steps.flatMap((step) => {
    if ('data' in step) return unfinished.rest(step, eventLines(step, paint));
    const [at, text] = step;
    return unfinished.write({ sessionId: 's', at, text, workedMs: 0, quietMs: 0 });
  });
}

test('shows the whole of what failed: it may name the command that mends it', () => {
  const text = `Not logged in\n${'x'.repeat(300)} auth login`;
  const failed = { isError: true, numTurns: 1, durationMs: 0, text };
  expect(shown(event({ kind: 'result', result: failed } as unknown as EventBody))).toEqual([
    '',
    '■ failed (1 turn, 0.0 s)',
    '  Not logged in',
    `  ${'x'.repeat(300)} auth login`,
  ]);
});

test('a denial is shown with the words that somebody wrote, not with those that Claude was told instead', () => {
  const denied = (message: string): ApiEvent =>
    event({ kind: 'permission_result', decision: 'deny', source: 'human', message } as unknown as EventBody);
  expect(shown(denied('not today'))).toEqual(['  ✗ denied by a person: not today']);
  expect(shown(denied('Permission denied by a person'))).toEqual(['  ✗ denied by a person']);
});

test.each([
  ['a line once it is complete', [[0, 'one\ntw']], ['● one']],
  [
    'and the rest with the message',
    [[0, 'one\ntw'], [6, 'o\nthree'], says('one\ntwo\nthree')],
    ['● one', '  two', '  three'],
  ],
  ['all of a message that says something else', [[0, 'one\ntw'], says('other')], ['● one', '● other']],
  [
    'the next text when it arrives, if it began too soon',
    [[0, 'one\ntw'], [0, 'next\nx'], says('one\ntwo'), says('next\nx')],
    ['● one', '  two', '● next', '  x'],
  ],
  [
    'a text that starts again before a line was shown',
    [[0, 'on'], [0, 'other\nx'], says('other\nx')],
    ['● other', '  x'],
  ],
  [
    'what was written when the turn was interrupted',
    [[0, 'one\ntw'], RESULT],
    ['● one', '  tw', '', '■ interrupted (1 turn, 0.0 s)'],
  ],
  [
    'blank lines once they are between two others',
    [
      [0, 'one\n\n'],
      [5, 'two\nx'],
    ],
    ['● one', '  ', '  two'],
  ],
] as const)('shows %s', (_what, steps, lines) => {
  expect(shown(...steps)).toEqual(lines);
});
