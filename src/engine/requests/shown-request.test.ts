import { expect, test } from 'vitest';
import { openRequest } from '../../../test/mcp/forms/open-request.ts';
import { changedInput, shownRequest } from './shown-request.ts';
import { marksIn, shorteningMark } from '../conversation/tool-summary.ts';

const long = `${'a'.repeat(20_000)}${'b'.repeat(20_000)}; touch tail.txt`;
const write = openRequest('Write', { file_path: 'a.txt', content: long });

test.each([
  ['32,000 characters', openRequest('Bash', { command: 'x'.repeat(32_000) })],
  [
    'texts of 32,000 characters together',
    openRequest('Edit', { old_string: 'o'.repeat(16_000), new_string: 'n'.repeat(16_000) }),
  ],
  [
    'a plan that is part of the input',
    openRequest('ExitPlanMode', { plan: 'p'.repeat(32_000) }, {}, 'p'.repeat(32_000)),
  ],
])('shown in full: %s', (_what, request) => {
  expect(shownRequest(request)).toEqual({ input: request.ask.input, plan: request.plan, fullChars: undefined });
});

test('longer text keeps its head and tail, gives its length, and is available in full', () => {
  const { input, fullChars } = shownRequest(write);
  const content = String(input['content']);
  expect(content.startsWith('aaa')).toBe(true);
  expect(content.endsWith('; touch tail.txt')).toBe(true);
  expect(content.length).toBeLessThan(32_100);
  expect(fullChars).toBe(long.length + 'a.txt'.length);
  expect(input['file_path']).toBe('a.txt');
  expect(shownRequest(write, true)).toEqual({ input: write.ask.input, plan: undefined, fullChars: undefined });
});

test('a plan that is not part of the input is shortened with it', () => {
  const { plan, fullChars } = shownRequest(openRequest('ExitPlanMode', {}, {}, 'p'.repeat(40_000)));
  expect(plan!.length).toBeLessThan(32_100);
  expect(fullChars).toBe(40_000);
});

test.each([
  ['the original input', write.ask.input],
  ['the input as shown', shownRequest(write).input],
])('%s is not a change', (_what, input) => {
  expect(changedInput(write, structuredClone(input))).toBeUndefined();
});

test.each([
  ['with another path', { ...shownRequest(write).input, file_path: 'b.txt' }],
  ['deep inside', { list: [{ text: shownRequest(write).input['content'] }] }],
  ['from another request or an event', { command: `echo '${shorteningMark(123, 'elsewhere')}'` }],
])('a shortened text in a changed input is refused, %s', (_when, input) => {
  expect(() => changedInput(write, input)).toThrow(/truncation mark/);
});

test.each([
  '… (40016 characters)',
  '⟪12 characters not shown⟫',
  '⟪12 characters not shown · 0123456789abcdef⟫',
  shorteningMark(12, 'a').replace('12', '13'),
])('text that resembles a mark is data: %s', (text) => {
  expect(marksIn(text)).toEqual([]);
  expect(changedInput(write, { file_path: 'a.txt', content: text })).toEqual({ file_path: 'a.txt', content: text });
});

test('a mark from the original tool input may stay in a changed input', () => {
  const mark = shorteningMark(99, 'an answer that Claude writes down');
  const request = openRequest('Write', { file_path: 'log.txt', content: `it said ${mark}` });
  const changed = { file_path: 'other.txt', content: `it said ${mark}` };
  expect(changedInput(request, changed)).toEqual(changed);
});
