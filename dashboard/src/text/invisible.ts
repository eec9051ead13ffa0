/**
 * Invisible characters that change what is read: controls and terminal escapes, text direction, zero width. Anyone
 * approving a command must see them.
 */
const INVISIBLE: readonly (readonly [first: number, last: number])[] = [
  [0x0000, 0x0008],
  [0x000b, 0x001f],
  [0x007f, 0x009f],
  [0x00ad, 0x00ad],
  [0x034f, 0x034f],
  [0x061c, 0x061c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  // Unpaired surrogates.
  [0xd800, 0xdfff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
  [0xe0000, 0xe0fff],
];
const ZERO_WIDTH_JOINER = 0x200d;
const EMOJI_FORM = 0xfe0f;
const PLAIN = /^[\t\n -~]*$/;
const ENDS_WITH_EMOJI = /\p{Extended_Pictographic}\ufe0f?$/u;

export interface Piece {
  readonly kind: 'text' | 'mark';
  readonly text: string;
}

export function showInvisible(text: string): Piece[] {
  if (PLAIN.test(text)) return text === '' ? [] : [{ kind: 'text', text }];
  const pieces: Piece[] = [];
  let from = 0;
  let at = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (isInvisible(code) && !isHarmless(code, text, at)) {
      if (at > from) pieces.push({ kind: 'text', text: text.slice(from, at) });
      pieces.push({ kind: 'mark', text: nameOf(code) });
      from = at + character.length;
    }
    at += character.length;
  }
  if (from < text.length) pieces.push({ kind: 'text', text: text.slice(from) });
  return pieces;
}

function isInvisible(code: number): boolean {
  return INVISIBLE.some(([first, last]) => code >= first && code <= last);
}

/** Half of a line break, or what joins the parts of an emoji. */
function isHarmless(code: number, text: string, at: number): boolean {
  if (code === 0x0d) return text[at + 1] === '\n';
  return (
    (code === ZERO_WIDTH_JOINER || code === EMOJI_FORM) && ENDS_WITH_EMOJI.test(text.slice(Math.max(0, at - 3), at))
  );
}

/** Controls have pictures of their own. */
function nameOf(code: number): string {
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
