import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { oneLine } from '../../../src/engine/conversation/tool-summary.ts';
import { diffOf } from '../../../src/mcp/forms/request-forms.ts';
import { field, visibleText } from '../../../src/mcp/forms/form.ts';
import { anyCharacter } from '../../harness/any-character.ts';
import { UNSEEN_CHARACTERS, VISIBLE_TEXTS } from '../../harness/invisible-vectors.ts';

/** Parts of emoji, and what is reserved for more of them, are tested beside the table. */
const INVISIBLE = /(?!\n| |\u200d|\ufe0f|\p{Extended_Pictographic})[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u;
/** Text a model could use to deceive a person, mixed with plain text. */
const nasty = fc
  .array(
    fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(
        '\u202e',
        '\u200b',
        '\u{e0041}',
        '\r',
        '\x1b[2K',
        '\n',
        ' '.repeat(50),
        '\n\n\n\n\n',
        '\u2066',
        '😀',
      ),
    ),
  )
  .map((parts) => parts.join(''));

describe('text as a person sees it', () => {
  it.each([
    ['echo \u202etxt.exe', 'echo \\u202etxt.exe'],
    ['a\u200bb', 'a\\u200bb'],
    ['\x1b[31mred\r', '\\u001b[31mred\\u000d'],
    ['tag \u{e0041}', 'tag \\u{e0041}'],
    ['one\r\ntwo\tthree', 'one\ntwo  three'],
    [`ls${' '.repeat(500)}; rm -rf ~`, 'ls ⟨500 blanks⟩ ; rm -rf ~'],
    [`ls${'\n'.repeat(100)}rm -rf ~`, 'ls\n⟨99 blank lines⟩\nrm -rf ~'],
    [`ls${' '.repeat(19)}; rm -rf ~`, 'ls ⟨19 blanks⟩ ; rm -rf ~'],
    [`ls${'\u2800'.repeat(40)}; rm -rf ~`, 'ls⟨40 × \\u2800⟩; rm -rf ~'],
    ['ünïcödé 日本語 😀', 'ünïcödé 日本語 😀'],
  ])('%j is shown as %j', (written, seen) => {
    expect(visibleText(written, 1000)).toBe(seen);
  });

  it.each(UNSEEN_CHARACTERS.map((code) => [code.toString(16), code]))('U+%s is spelled out', (hex, code) => {
    const seen = visibleText(`rm${String.fromCodePoint(code)} -rf`);
    expect(seen).toMatch(new RegExp(`^rm\\\\u\\{?0*${hex}\\}? -rf$`));
  });

  it.each(VISIBLE_TEXTS)('%j stays as it is', (text) => {
    expect(visibleText(text)).toBe(text);
  });

  it('hides nothing and is bounded', () => {
    fc.assert(
      fc.property(nasty, fc.integer({ min: 20, max: 200 }), (written, maxChars) => {
        const seen = visibleText(written, maxChars);
        expect(seen).not.toMatch(INVISIBLE);
        expect(seen.length).toBeLessThanOrEqual(maxChars + 50);
      }),
    );
  });

  it('keeps the end of shortened text, and says how much is missing', () => {
    const seen = visibleText(`echo ${'a'.repeat(5000)}; rm -rf ~`, 100);
    expect(seen).toMatch(/^echo a+\n⟨\d+ characters not shown⟩\na+; rm -rf ~$/);
  });

  it('is prefixed with a bar if it has several lines, so that none looks like a line of the form', () => {
    expect(field('command', 'ls\nAsked because: all is well')).toBe('command:\n│ ls\n│ Asked because: all is well');
    expect(field('command', 'ls')).toBe('command: ls');
  });
});

describe('one line', () => {
  it('marks folded blanks that are followed by more text', () => {
    expect(oneLine(`ls${' '.repeat(10_000)}; rm -rf ~`, 100)).toBe('ls…');
  });

  it('hides nothing and is bounded', () => {
    fc.assert(
      fc.property(nasty, (written) => {
        const seen = oneLine(written, 80);
        expect(seen).not.toMatch(INVISIBLE);
        expect(seen.length).toBeLessThanOrEqual(81);
      }),
    );
  });
});

describe('a diff', () => {
  it.each([
    ['a line changes', 'one\ntwo\nthree', 'one\n2\nthree', ['  one', '- two', '+ 2', '  three']],
    ['a line is added', 'one\ntwo', 'one\nnew\ntwo', ['  one', '+ new', '  two']],
    ['a line is removed', 'one\ntwo', 'two', ['- one', '  two']],
    ['a file is new', '', '  one\n\ttwo\n', ['+   one', '+   two']],
    [
      'little of a long text changes',
      'a\nb\nc\nd\ne\nf',
      'a\nb\nc\nX\ne\nf',
      ['  b', '  c', '- d', '+ X', '  e', '  f'],
    ],
    ['nothing changes', 'one', 'one', ['  one']],
  ])('when %s', (_, before, after, lines) => {
    for (const short of [false, true]) expect(diffOf(before, after, { short })).toBe(lines.join('\n'));
  });

  it('in short form says what it leaves out', () => {
    const many = (word: string): string => Array.from({ length: 500 }, (_, i) => `${word} ${i}`).join('\n');
    const lines = diffOf(many('old'), many('new'), { short: true }).split('\n');
    expect(lines).toHaveLength(42);
    expect(lines).toContain('⟨- 480 lines not shown⟩');
    expect(lines).toContain('⟨+ 480 lines not shown⟩');
  });

  it('in full form keeps every line complete, blanks included', () => {
    const lines = Array.from({ length: 500 }, (_, i) => `${i}${'  x'.repeat(100)}`);
    expect(diffOf('', lines.join('\n'), { short: false })).toBe(lines.map((line) => `+ ${line}`).join('\n'));
    expect(diffOf('a  b', 'a b', { short: false })).toBe('- a  b\n+ a b');
  });

  it('counts runs of blank lines, so that nothing hides below them', () => {
    const content = `one${'\n'.repeat(201)}two`;
    expect(diffOf('', content, { short: false })).toBe('+ one\n⟨+ 200 blank lines⟩\n+ two');
    expect(diffOf('', content, { short: true })).toContain('⟨+ 39 blank lines⟩');
  });

  it('shows each changed line of a small edit', () => {
    const small = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 8 });
    fc.assert(
      fc.property(small, small, (before, after) => {
        const lines = diffOf(before.join('\n'), after.join('\n'), { short: true }).split('\n');
        const count = (mark: string): number => lines.filter((line) => line.startsWith(mark)).length;
        expect(count('+') - count('-')).toBe(after.length - before.length);
      }),
    );
  });
});
