/** Markdown as data: the subset that Claude writes. There is no HTML in it: what looks like HTML is text. */

export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'code'; readonly info: string; readonly text: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'list'; readonly ordered: boolean; readonly start: number; readonly items: readonly ListItem[] }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'rule' };

export interface ListItem {
  readonly done: boolean | undefined;
  readonly blocks: readonly Block[];
}

export type Inline =
  | { readonly kind: 'text' | 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis' | 'strike'; readonly parts: readonly Inline[] }
  | { readonly kind: 'link'; readonly href: string; readonly title: string; readonly parts: readonly Inline[] }
  | { readonly kind: 'break' };

const MAX_DEPTH = 12;
/** No one formats a paragraph of that length, and looking for pairs in it would be slow. */
const MAX_INLINE_LENGTH = 10_000;

export function parseBlocks(source: string, depth = 0): Block[] {
  const lines = source.split(/\r\n|\n/);
  const nextText = nextTextLines(lines);
  const blocks: Block[] = [];
  let paragraph: string[] = [];
  const endParagraph = () => {
    if (paragraph.length > 0) blocks.push({ kind: 'paragraph', text: paragraph.join('\n') });
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line.trim() === '') {
      endParagraph();
      continue;
    }
    const fence = /^ {0,3}(`{3,}|~{3,})([^]*)$/.exec(line);
    if (fence && !fence[2]?.includes('`')) {
      endParagraph();
      const mark = fence[1] ?? '```';
      const code: string[] = [];
      for (at++; at < lines.length; at++) {
        const next = lines[at] ?? '';
        if (new RegExp(`^ {0,3}${mark[0] ?? '`'}{${mark.length},}\\s*$`).test(next)) break;
        code.push(next);
      }
      blocks.push({ kind: 'code', info: (fence[2] ?? '').trim(), text: code.join('\n') });
      continue;
    }
    const heading = /^ {0,3}(#{1,6})\s(.*)$/.exec(line);
    if (heading) {
      endParagraph();
      blocks.push({ kind: 'heading', level: heading[1]?.length ?? 1, text: headingText(heading[2] ?? '') });
      continue;
    }
    if (/^ {0,3}([-*_])\s*(\1\s*){2,}$/.test(line)) {
      endParagraph();
      blocks.push({ kind: 'rule' });
      continue;
    }
    if (/^ {0,3}>/.test(line) && depth < MAX_DEPTH) {
      endParagraph();
      const inner: string[] = [];
      for (; at < lines.length && /^ {0,3}>/.test(lines[at] ?? ''); at++) {
        inner.push((lines[at] ?? '').replace(/^ {0,3}> ?/, ''));
      }
      at--;
      blocks.push({ kind: 'quote', blocks: parseBlocks(inner.join('\n'), depth + 1) });
      continue;
    }
    const bullet = LIST_MARK.exec(line);
    if (bullet && depth < MAX_DEPTH && (paragraph.length === 0 || bullet[3] !== '')) {
      endParagraph();
      const list = readList(lines, nextText, at, depth);
      blocks.push(list.block);
      at = list.end - 1;
      continue;
    }
    if (line.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '') && paragraph.length === 0) {
      const head = cells(line);
      const rows: string[][] = [];
      for (at += 2; at < lines.length && (lines[at] ?? '').includes('|'); at++) {
        rows.push(cells(lines[at] ?? ''));
      }
      at--;
      blocks.push({ kind: 'table', head, rows });
      continue;
    }
    paragraph.push(line.replace(/^\s+/, ''));
  }
  endParagraph();
  return blocks;
}

/** Without the marks that may close a heading. Loops, because a pattern for it backtracks over long runs of blanks. */
function headingText(written: string): string {
  const text = written.trim();
  let end = text.length;
  while (text[end - 1] === '#') end--;
  return text.slice(0, end).trimEnd();
}

const LIST_MARK = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+(.*)|)$/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*(?:\|\s*)?$/;

/** For each line, the first one after it that is not blank. Looking for it at every blank line would be quadratic. */
function nextTextLines(lines: readonly string[]): (string | undefined)[] {
  const next = Array<string | undefined>(lines.length);
  let text: string | undefined;
  for (let at = lines.length - 1; at >= 0; at--) {
    next[at] = text;
    if (lines[at]?.trim() !== '') text = lines[at];
  }
  return next;
}

function readList(
  lines: readonly string[],
  nextText: readonly (string | undefined)[],
  from: number,
  depth: number,
): { block: Block; end: number } {
  const first = LIST_MARK.exec(lines[from] ?? '');
  const indent = first?.[1]?.length ?? 0;
  const ordered = /\d/.test(first?.[2] ?? '');
  const items: ListItem[] = [];
  let at = from;
  while (at < lines.length) {
    const mark = LIST_MARK.exec(lines[at] ?? '');
    if (!mark || (mark[1]?.length ?? 0) !== indent || /\d/.test(mark[2] ?? '') !== ordered) break;
    const content: string[] = [mark[3] ?? ''];
    const inside = indent + (mark[2]?.length ?? 1) + 1;
    for (at++; at < lines.length; at++) {
      const line = lines[at] ?? '';
      const indented = line.length - line.trimStart().length;
      if (line.trim() === '') {
        const next = nextText[at];
        if (next === undefined || next.length - next.trimStart().length < inside) {
          // A blank line between two items of one list does not end it.
          if (next !== undefined && LIST_MARK.exec(next)?.[1]?.length === indent) continue;
          break;
        }
        content.push('');
      } else if (indented > indent) {
        content.push(line.slice(Math.min(indented, inside)));
      } else if (LIST_MARK.test(line) || (lines[at - 1] ?? '').trim() === '' || STARTS_BLOCK.test(line)) break;
      else content.push(line);
    }
    const task = /^\[([ xX])\]\s+/.exec(content[0] ?? '');
    if (task) content[0] = (content[0] ?? '').slice(task[0].length);
    items.push({
      done: task ? task[1] !== ' ' : undefined,
      blocks: parseBlocks(content.join('\n'), depth + 1),
    });
  }
  const start = ordered ? Number.parseInt(first?.[2] ?? '1', 10) : 1;
  return { block: { kind: 'list', ordered, start, items }, end: at };
}

const STARTS_BLOCK = /^ {0,3}(#{1,6}\s|>|`{3,}|~{3,})/;

function cells(line: string): string[] {
  return line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

const TOKEN =
  /(`+)([\s\S]+?)\1(?!`)|!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*<?((?:[^\s()<>]|\([^\s()]*\))*)>?(?:\s+["']([^"']*)["'])?\s*\)|(\*\*|__)(?=\S)([\s\S]*?\S)\6|(\*|_)(?=\S)([\s\S]*?\S)\8(?!\8)|~~(?=\S)([\s\S]*?\S)~~|\\([!-/:-@[-`{-~])|<?(https?:\/\/[^\s<>"'`]+[^\s<>"'`.,;:!?)\]])>?|( {2,}|\\)\n/g;

export function parseInline(text: string, depth = 0): Inline[] {
  if (depth > MAX_DEPTH || text.length > MAX_INLINE_LENGTH) return [{ kind: 'text', text }];
  const parts: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const inline = toInline(match, text, depth);
    if (!inline) continue;
    if (match.index > end) parts.push({ kind: 'text', text: text.slice(end, match.index) });
    parts.push(inline);
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push({ kind: 'text', text: text.slice(end) });
  return parts;
}

function toInline(match: RegExpMatchArray, text: string, depth: number): Inline | undefined {
  const [whole, , code, label, target, title = '', , strong, slant, emphasis, strike, escaped, url] = match;
  if (code !== undefined) return { kind: 'code', text: code.replace(/^ (.*[^ ].*) $/, '$1') };
  if (label !== undefined) {
    const parts = whole.startsWith('!') ? [imageWords(label)] : parseInline(label, depth + 1);
    const href = safeHref(target ?? '');
    // Anything that is not a web address is shown as written.
    return href === undefined ? { kind: 'text', text: whole } : { kind: 'link', href, title, parts };
  }
  if (strong !== undefined) return { kind: 'strong', parts: parseInline(strong, depth + 1) };
  if (emphasis !== undefined) {
    // snake_case_names are not emphasis.
    const before = text[(match.index ?? 0) - 1] ?? ' ';
    const after = text[(match.index ?? 0) + whole.length] ?? ' ';
    if (slant === '_' && (/\w/.test(before) || /\w/.test(after))) return undefined;
    return { kind: 'emphasis', parts: parseInline(emphasis, depth + 1) };
  }
  if (strike !== undefined) return { kind: 'strike', parts: parseInline(strike, depth + 1) };
  if (escaped !== undefined) return { kind: 'text', text: escaped };
  if (url !== undefined) {
    const href = safeHref(url);
    return href === undefined ? undefined : { kind: 'link', href, title: '', parts: [{ kind: 'text', text: url }] };
  }
  return { kind: 'break' };
}

function imageWords(label: string): Inline {
  return { kind: 'text', text: label === '' ? 'image' : `image: ${label}` };
}

/** Only addresses that a browser opens as a page. */
export function safeHref(target: string): string | undefined {
  try {
    const url = new URL(target);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : undefined;
  } catch {
    return undefined;
  }
}
