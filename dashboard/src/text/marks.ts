import { visibleLines, visiblePieces, type Piece, type VisibleLine } from '../../../src/text/invisible.ts';
import { plural } from './words.ts';

/** Stands for what would not be seen. */
export interface Mark {
  readonly words: string;
  readonly title: string;
}

/** A text as the page shows it: stretches of plain text with marks between them. */
export function markedText(text: string): (string | Mark)[] {
  return markedLines(visibleLines(text));
}

/** The same for one line, whose runs of blank lines are counted elsewhere. */
export function markedLine(line: string): (string | Mark)[] {
  return markedLines([{ kind: 'line', pieces: visiblePieces(line) }]);
}

export function markedLines(lines: readonly VisibleLine[]): (string | Mark)[] {
  const marked: (string | Mark)[] = [];
  let plain = '';
  const add = (mark: Mark) => {
    if (plain !== '') marked.push(plain);
    plain = '';
    marked.push(mark);
  };
  for (const [index, line] of lines.entries()) {
    if (index > 0) plain += '\n';
    if (line.kind === 'blank lines') add(blankLines(line.count));
    else {
      for (const piece of line.pieces) {
        if (piece.kind === 'text') plain += piece.text;
        else add(markOf(piece));
      }
    }
  }
  if (plain !== '') marked.push(plain);
  return marked;
}

export function blankLines(count: number): Mark {
  return { words: `… ${plural(count, 'blank line')} …`, title: 'Blank lines' };
}

function markOf(piece: Exclude<Piece, { kind: 'text' }>): Mark {
  if (piece.kind === 'blanks') return { words: `… ${plural(piece.count, 'blank')} …`, title: 'Blanks' };
  const name = nameOf(piece.codePoint);
  if (piece.count === 1) return { words: name, title: 'An invisible character' };
  return { words: `${name} × ${piece.count.toLocaleString()}`, title: 'Invisible characters' };
}

/** Controls have pictures of their own. */
function nameOf(code: number): string {
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
