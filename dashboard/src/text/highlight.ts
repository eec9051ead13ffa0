/** A rough reading of code in any common language: enough to tell its parts apart, and never wrong about its text. */

export type TokenKind = 'comment' | 'string' | 'number' | 'keyword';
export interface Token {
  readonly kind: TokenKind | undefined;
  readonly text: string;
}

const KEYWORDS =
  'abstract as async await break case catch class const continue def default defer del do elif else enum export extends ' +
  'false False final finally fn for from func function go if impl implements import in instanceof interface is lambda let ' +
  'match mod module mut namespace new nil None not null of or package pass private protected pub public raise return self ' +
  'static struct super switch this throw trait true True try type typeof undefined use var void where while with yield';

const PATTERN = new RegExp(
  [
    String.raw`(?<comment>\/\/.*|(?<![\w$&])#(?![\da-f]{3,8}\b).*|\/\*[^]*?(?:\*\/|$)|<!--[^]*?(?:-->|$))`,
    String.raw`(?<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|\x60(?:\\.|[^\x60\\])*\x60?)`,
    String.raw`(?<number>\b\d[\w.]*\b)`,
    String.raw`(?<keyword>\b(?:${KEYWORDS.replaceAll(' ', '|')})\b)`,
  ].join('|'),
  'g',
);

/** Joined, the tokens are the text. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  for (const match of text.matchAll(PATTERN)) {
    if (match.index > at) found.push({ kind: undefined, text: text.slice(at, match.index) });
    const kind = (['comment', 'string', 'number', 'keyword'] as const).find(
      (name) => match.groups?.[name] !== undefined,
    );
    found.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ kind: undefined, text: text.slice(at) });
  return found;
}
