/** Terminal output as an SVG, so that a page can show a real session. */

const COLUMNS = 106;
const LINE_HEIGHT = 18;
// Of the widest font below; a narrower one leaves some space on the right.
const CHAR_WIDTH = 8.05;
const MARGIN = 18;

const COLOURS: readonly (readonly [RegExp, string])[] = [
  [/^\s*[✓+](?!\+\+)/, '#7ee787'],
  [/^\s*([✗✖]|-(?!--)|failed)/, '#ff7b72'],
  [/^\s*\?/, '#e3b341'],
  [/^\s*▸/, '#79c0ff'],
  [/^\s*●/, '#ffffff'],
  [/^\s*(@@|---|\+\+\+)/, '#8b949e'],
];
const PLAIN = '#c9d1d9';

export function terminalPicture(text: string, title: string): string {
  const lines = text.trimEnd().split('\n').flatMap(wrapped);
  const width = Math.ceil(COLUMNS * CHAR_WIDTH + 2 * MARGIN);
  const height = lines.length * LINE_HEIGHT + 2 * MARGIN;
  const shown = lines.flatMap(({ words, colour }, index) => {
    if (words === '') return [];
    const y = MARGIN + (index + 0.75) * LINE_HEIGHT;
    return [`<text x="${MARGIN}" y="${y}" fill="${colour}" xml:space="preserve">${escaped(words)}</text>`];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">`,
    ...shown,
    '</g>',
    '</svg>\n',
  ].join('\n');
}

/** Wrapped text keeps its colour. */
function wrapped(line: string): { words: string; colour: string }[] {
  const colour = COLOURS.find(([pattern]) => pattern.test(line))?.[1] ?? PLAIN;
  const pieces: string[] = [];
  for (let rest = line; ;) {
    if (rest.length <= COLUMNS) return [...pieces, rest].map((words) => ({ words, colour }));
    const space = rest.lastIndexOf(' ', COLUMNS);
    const end = space > COLUMNS / 2 ? space : COLUMNS;
    pieces.push(rest.slice(0, end));
    rest = `    ${rest.slice(end).trimStart()}`;
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
