import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseBlocks, parseInline, safeHref, type Block, type Inline } from './markdown.ts';

test('blocks are recognised by kind', () => {
  const kinds = parseBlocks(
    '# Title\n\ntext\nmore\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\n```ts\nconst a = 1;\n```\n\n> quoted\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n---',
  ).map(({ kind }) => kind);
  expect(kinds).toEqual(['heading', 'paragraph', 'list', 'list', 'code', 'quote', 'table', 'rule']);
});

test('lists nest, keep their numbers and support tasks', () => {
  expect(parseBlocks('3. three\n   - [x] done\n   - [ ] open\n4. four')).toEqual([
    {
      kind: 'list',
      ordered: true,
      start: 3,
      items: [
        {
          done: undefined,
          blocks: [
            { kind: 'paragraph', text: 'three' },
            {
              kind: 'list',
              ordered: false,
              start: 1,
              items: [
                { done: true, blocks: [{ kind: 'paragraph', text: 'done' }] },
                { done: false, blocks: [{ kind: 'paragraph', text: 'open' }] },
              ],
            },
          ],
        },
        { done: undefined, blocks: [{ kind: 'paragraph', text: 'four' }] },
      ],
    },
  ]);
});

test('an unclosed code block runs to the end', () => {
  expect(parseBlocks('```\na\n\n# b')).toEqual([{ kind: 'code', info: '', text: 'a\n\n# b' }]);
});

test('emphasis, code and links are parsed, and names with underscores left alone', () => {
  const parts = parseInline('**bold** _soft_ `a_b` snake_case_name [site](https://example.com/x) https://example.org.');
  expect(parts.map(({ kind }) => kind)).toEqual([
    'strong',
    'text',
    'emphasis',
    'text',
    'code',
    'text',
    'link',
    'text',
    'link',
    'text',
  ]);
});

test.each([
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  'file:///etc/passwd',
  '//host/x',
  'x',
])('%s is not a safe link target', (target) => {
  expect(safeHref(target)).toBeUndefined();
  expect(parseInline(`[click](${target})`).some(({ kind }) => kind === 'link')).toBe(false);
});

test('HTML is rendered as text', () => {
  expect(parseBlocks('<img src=x onerror=alert(1)>')).toEqual([
    { kind: 'paragraph', text: '<img src=x onerror=alert(1)>' },
  ]);
  expect(parseInline('<b>x</b>')).toEqual([{ kind: 'text', text: '<b>x</b>' }]);
});

test('an image becomes a text link and is never loaded', () => {
  expect(parseInline('![logo](https://example.com/a.png)')).toEqual([
    { kind: 'link', href: 'https://example.com/a.png', title: '', parts: [{ kind: 'text', text: 'image: logo' }] },
  ]);
});

test('the title of a link is kept', () => {
  expect(parseInline('[a](https://example.com/ "then push")')).toMatchObject([{ kind: 'link', title: 'then push' }]);
});

test.each([
  ['items with blank lines between them', (size: number) => '- a\n\n'.repeat(size)],
  ['blank lines in an item', (size: number) => `- a${'\n'.repeat(size)}  b`],
  ['lists in items', (size: number) => '- a\n\n  - b\n\n'.repeat(size / 2)],
  ['a fence that is none', (size: number) => `\`\`\`${' '.repeat(size)}\``],
  ['a long fence that is none', (size: number) => `${'~'.repeat(size)}\``],
  ['blanks in a heading', (size: number) => `# a${' '.repeat(size / 20)}b`],
  ['blanks in the rule of a table', (size: number) => `a|b\n--${' '.repeat(size)}x`],
])(
  '%s: four times the text takes about four times as long',
  (_, written) => {
    // Processor time, since the machine may have other work to do. The page has no types of Node.
    const { process } = globalThis as unknown as { process: { cpuUsage: (since?: object) => { user: number } } };
    const fastest = (source: string) =>
      Math.min(
        ...Array.from({ length: 5 }, () => {
          const start = process.cpuUsage();
          parseBlocks(source);
          return process.cpuUsage(start).user / 1000;
        }),
      );
    const short = fastest(written(5_000));
    const long = fastest(written(20_000));
    // Quadratic work would take sixteen times as long. What takes a few milliseconds cannot be compared.
    expect(long).toBeLessThan(Math.max(10 * short, 60));
  },
  600_000,
);

test('text after any sequence of markup survives parsing', () => {
  const markup = fc.constantFrom(
    '*',
    '**',
    '_',
    '`',
    '```',
    '\n',
    '\n\n',
    '- ',
    '1. ',
    '> ',
    '# ',
    '|',
    '[',
    '](',
    ')',
    '<',
    'word ',
    '  ',
    '~~',
    '\\',
    'https://a.b/c ',
  );
  fc.assert(
    fc.property(fc.array(markup, { maxLength: 60 }), (parts) => {
      const text = `${parts.join('')}MARK`;
      expect(words(parseBlocks(text))).toContain('MARK');
    }),
  );
});

function words(blocks: readonly Block[]): string {
  return blocks
    .map((block) => {
      if (block.kind === 'code') return `${block.info} ${block.text}`;
      if (block.kind === 'quote') return words(block.blocks);
      if (block.kind === 'list') return block.items.map((item) => words(item.blocks)).join(' ');
      if (block.kind === 'table')
        return [...block.head, ...block.rows.flat()].map((cell) => inlineWords(parseInline(cell))).join(' ');
      return block.kind === 'rule' ? '' : inlineWords(parseInline(block.text));
    })
    .join('\n');
}

function inlineWords(parts: readonly Inline[]): string {
  return parts.map((part) => ('text' in part ? part.text : 'parts' in part ? inlineWords(part.parts) : '\n')).join('');
}
