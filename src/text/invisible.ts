/**
 * Characters that a reader cannot see, and runs of blanks that push text out of sight. Forms, the dashboard and the
 * terminal all show text through this table: whoever decides on a text must see what is in it.
 */

/** Characters that show nothing although no Unicode property says so: blank symbols, fillers, joiners. */
const BLANK_GLYPHS = '[\\u2800\\ufffc\\u{13441}\\u{13442}\\u{1d159}]|\\u2d7f|\\u{1107f}|\\u{16fe4}';
/** Controls, formatting, private and unassigned code points, unpaired surrogates, every separator but the space. */
const INVISIBLE = `(?! )(?:[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}]|${BLANK_GLYPHS})`;
/** A joiner or variation selector inside an emoji is part of a visible character. */
const EMOJI =
  '\\p{Extended_Pictographic}\\ufe0f?\\p{Emoji_Modifier}?(?:\\u200d\\p{Extended_Pictographic}\\ufe0f?\\p{Emoji_Modifier}?)*|[0-9#*]\\ufe0f\\u20e3';

/** Indentation of this width is common in code; a gap inside a line is suspect sooner. */
const MAX_INDENT = 40;
const MAX_GAP = 9;
const TAB_WIDTH = 4;
const MAX_BLANK_LINES = 2;

/** Made on first use: Unicode properties cost half a millisecond, and a server starts without them. */
let patterns: { readonly characters: RegExp; readonly runs: RegExp } | undefined;
function patternsOnce(): { readonly characters: RegExp; readonly runs: RegExp } {
  patterns ??= {
    characters: new RegExp(`${EMOJI}|(${INVISIBLE})`, 'gu'),
    runs: new RegExp(`${EMOJI}|((?!\\t)${INVISIBLE})\\1*|[ \\t]{${MAX_GAP + 1},}`, 'gu'),
  };
  return patterns;
}

/** Most texts contain nothing else, and this check is much faster. */
/** Its absence is found faster than plain text from end to end is matched. */
const NOT_PLAIN = /[^ -~]/;
const PLAIN_WITHOUT_GAPS = /^(?!.* {10})[ -~]*$/;
const BLANK_LINE = /^[ \t]*$/;

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** One invisible character, repeated `count` times. */
  | { readonly kind: 'invisible'; readonly codePoint: number; readonly count: number }
  /** A long run of spaces and tabs. */
  | { readonly kind: 'blanks'; readonly count: number };

export type VisibleLine =
  | { readonly kind: 'line'; readonly pieces: readonly Piece[] }
  /** Several lines without any text. */
  | { readonly kind: 'blank lines'; readonly count: number };

/** A single line with every invisible character as an escape sequence, line breaks and tabs included. */
export function escapeInvisible(text: string): string {
  if (!NOT_PLAIN.test(text)) return text;
  return text.replace(patternsOnce().characters, (whole, invisible: string | undefined) =>
    invisible === undefined ? whole : escapeSequence(codePointOf(invisible)),
  );
}

/** The same for several lines: line breaks stay. */
function escapeInvisibleLines(text: string): string {
  return text.split('\n').map(escapeInvisible).join('\n');
}

/** `\u202e`, `\u{e0041}` */
export function escapeSequence(codePoint: number): string {
  const code = codePoint.toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
}

/** The lines of a text in visible pieces. Runs of blank lines are counted, so that nothing hides below them. */
export function visibleLines(text: string): VisibleLine[] {
  const lines = text.split(/\r?\n/);
  // What follows the last line break is no line of its own, but shows that there is one.
  const rest = lines.length > 1 && lines.at(-1) === '' ? lines.splice(-1) : [];
  const folded = foldBlankLines<string, VisibleLine>(
    lines,
    (line) => (isBlankLine(line) ? 'blank' : undefined),
    ({ length }) => ({ kind: 'blank lines', count: length }),
  );
  return [...folded, ...rest].map((line) =>
    typeof line === 'string' ? { kind: 'line', pieces: visiblePieces(line) } : line,
  );
}

export function visiblePieces(line: string): Piece[] {
  if (PLAIN_WITHOUT_GAPS.test(line)) return line === '' ? [] : [{ kind: 'text', text: line }];
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of line.matchAll(patternsOnce().runs)) {
    const piece = pieceOf(match);
    if (!piece) continue;
    if (match.index > end) pieces.push({ kind: 'text', text: line.slice(end, match.index) });
    pieces.push(piece);
    end = match.index + match[0].length;
  }
  if (end < line.length) pieces.push({ kind: 'text', text: line.slice(end) });
  return pieces;
}

/** Replaces each long run of blank lines. Lines form a run if `blankKind` returns the same for each of them. */
export function foldBlankLines<Line, Folded>(
  lines: readonly Line[],
  blankKind: (line: Line) => string | undefined,
  fold: (run: readonly Line[]) => Folded,
): (Line | Folded)[] {
  const folded: (Line | Folded)[] = [];
  let run: Line[] = [];
  let kind: string | undefined;
  const endRun = () => {
    if (run.length > MAX_BLANK_LINES) folded.push(fold(run));
    else folded.push(...run);
    run = [];
  };
  for (const line of lines) {
    const next = blankKind(line);
    if (next !== kind) endRun();
    kind = next;
    if (next === undefined) folded.push(line);
    else run.push(line);
  }
  endRun();
  return folded;
}

export function isBlankLine(line: string): boolean {
  return BLANK_LINE.test(line);
}

function pieceOf({ 0: run, 1: invisible, index }: RegExpExecArray): Piece | undefined {
  if (invisible !== undefined) {
    return { kind: 'invisible', codePoint: codePointOf(invisible), count: run.length / invisible.length };
  }
  if (!isBlankLine(run)) return undefined;
  if (index === 0 && widthOf(run) <= MAX_INDENT) return undefined;
  return { kind: 'blanks', count: run.length };
}

function widthOf(blanks: string): number {
  return blanks.length + (TAB_WIDTH - 1) * (blanks.split('\t').length - 1);
}

function codePointOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

/**
 * A text for the terminal. What is inserted into it may come from a repository, a token or a session: a control or
 * direction character in a name could rewrite what the reader sees, and a line break could add lines of its own.
 */
export function printable(strings: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return strings.map((text, index) => text + escapeInvisible(String(values[index] ?? ''))).join('');
}

/** A message of several lines. */
export function printableLines(message: string): string {
  return escapeInvisibleLines(message);
}
