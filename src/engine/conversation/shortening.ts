import { createHash } from 'node:crypto';
import { cutAt } from './tool-summary.ts';

/*
 * Where a text is shortened for a reader, a mark says so. The mark carries a checksum, which sets it apart from
 * text that merely looks like one (a page about this server, say), even after a restart.
 */
const MARK = /⟪([0-9]+) characters not shown · ([0-9a-f]{8})([0-9a-f]{8})⟫/g;

/** `seed` distinguishes places where the same number of characters is missing. */
export function shorteningMark(hidden: number, seed: string): string {
  const nonce = hash(seed);
  return `⟪${String(hidden)} characters not shown · ${nonce}${checkSum(String(hidden), nonce)}⟫`;
}

/** The genuine marks in a text; look-alikes are left out. */
export function marksIn(text: string): string[] {
  return [...text.matchAll(MARK)]
    .filter(([, hidden = '', nonce = '', sum]) => sum === checkSum(hidden, nonce))
    .map(([mark]) => mark);
}

function checkSum(hidden: string, nonce: string): string {
  return hash(`claude-code-mcp shortened ${hidden} ${nonce}`);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Head and tail of a long text: the end of a command or of a test run says as much as its beginning. */
export function shortenText(text: string, maxChars: number, seed: string): string {
  if (text.length <= maxChars) return text;
  const head = cutAt(text, Math.ceil(maxChars / 2));
  const tail = tailOf(text, Math.floor(maxChars / 2));
  return `${head}${shorteningMark(text.length - head.length - tail.length, seed)}${tail}`;
}

/** Never begins with half a surrogate pair. */
export function tailOf(text: string, chars: number): string {
  if (chars <= 0) return '';
  const tail = text.slice(-chars);
  const first = tail.charCodeAt(0);
  return tail.length < text.length && first >= 0xdc00 && first <= 0xdfff ? tail.slice(1) : tail;
}

/** The value with every long text in it shortened; the same object if nothing was. */
export function shortenTexts<Value>(value: Value, maxChars: number, seed: string): { value: Value; cut: boolean } {
  const short = shortened(value, maxChars, seed);
  return { value: short as Value, cut: short !== value };
}

function shortened(value: unknown, maxChars: number, path: string): unknown {
  if (typeof value === 'string') return shortenText(value, maxChars, path);
  if (typeof value !== 'object' || value === null) return value;
  let cut = false;
  const short = (item: unknown, name: string | number): unknown => {
    const result = shortened(item, maxChars, `${path}/${String(name)}`);
    cut ||= result !== item;
    return result;
  };
  const copy = Array.isArray(value)
    ? value.map(short)
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [name, short(item, name)]));
  return cut ? copy : value;
}

/** Every text in a value, excluding keys. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** The maximum length per text so that all of them together have `total`. */
export function evenShare(lengths: readonly number[], total: number): number {
  const rising = [...lengths].sort((a, b) => a - b);
  let left = total;
  for (const [index, length] of rising.entries()) {
    const share = Math.floor(left / (rising.length - index));
    if (length > share) return share;
    left -= length;
  }
  return Infinity;
}
