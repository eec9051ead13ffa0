import { expect, test } from 'vitest';
import { terminalPicture } from '../../scripts/docs/terminal-picture.ts';

const words = (svg: string): string[] => [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text]) => text!);

test('shows every non-empty line, with markup escaped', () => {
  const svg = terminalPicture('first\n\n  a < b && "c"\n', 'A picture');
  expect(words(svg)).toEqual(['first', '  a &lt; b &amp;&amp; &quot;c&quot;']);
});

test('wraps long lines between words without losing any', () => {
  const long = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ');
  const lines = words(terminalPicture(long, 'A picture'));
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(106);
  expect(lines.map((line) => line.trim()).join(' ')).toBe(long);
});
