/*
 * Rules and the texts they are held against come from callers and models. Matching them must not take longer than their
 * lengths explain: a regular expression made of `a*a*a*…b` would keep the whole server from answering.
 */

/** `*` matches anything. Each piece between two stars matches at its first position; a later one never helps. */
export function matchesWildcards(pattern: string, text: string): boolean {
  const [head = '', ...pieces] = pattern.split('*');
  const tail = pieces.pop();
  if (tail === undefined) return text === head;
  const end = text.length - tail.length;
  if (end < head.length || !text.startsWith(head) || !text.endsWith(tail)) return false;
  let from = head.length;
  for (const piece of pieces) {
    const at = text.indexOf(piece, from);
    if (at < 0 || at + piece.length > end) return false;
    from = at + piece.length;
  }
  return true;
}

type PathToken =
  | { readonly kind: 'text'; readonly text: string }
  /** `*`: anything within one name. */
  | { readonly kind: 'name' }
  /** `**`: anything. */
  | { readonly kind: 'anything' }
  /** `**` and a slash: any directories, or none. */
  | { readonly kind: 'directories' };

/** As in .gitignore: the path itself or something below it. */
export function matchesPath(pattern: string, path: string): boolean {
  return endsIn(pattern, path)?.some((isEnd, at) => isEnd === 1 && (at === path.length || path[at] === '/')) ?? false;
}

/** The path itself. */
export function matchesWholePath(pattern: string, path: string): boolean {
  return endsIn(pattern, path)?.[path.length] === 1;
}

/** Where in the path the pattern may end; undefined if nowhere. At worst O(pattern × path). */
function endsIn(pattern: string, path: string): Uint8Array | undefined {
  // Where in the path the pattern, as far as it has been read, may end.
  let ends = new Uint8Array(path.length + 1);
  ends[0] = 1;
  for (const token of tokensOf(pattern)) {
    ends = token.kind === 'text' ? afterText(token.text, ends, path) : afterWildcard(token.kind, ends, path);
    if (!ends.includes(1)) return undefined;
  }
  return ends;
}

function tokensOf(pattern: string): PathToken[] {
  return pattern.split(/(\*\*\/|\*\*|\*)/).flatMap((piece): PathToken[] => {
    if (piece === '') return [];
    if (piece === '**/') return [{ kind: 'directories' }];
    if (piece === '**') return [{ kind: 'anything' }];
    return piece === '*' ? [{ kind: 'name' }] : [{ kind: 'text', text: piece }];
  });
}

function afterText(text: string, ends: Uint8Array, path: string): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(ends.length);
  for (let at = ends.indexOf(1); at >= 0; at = ends.indexOf(1, at + 1)) {
    if (path.startsWith(text, at)) next[at + text.length] = 1;
  }
  return next;
}

function afterWildcard(
  kind: Exclude<PathToken['kind'], 'text'>,
  ends: Uint8Array,
  path: string,
): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(ends);
  let open = false;
  for (let at = Math.max(ends.indexOf(1), 0); at < ends.length; at++) {
    const afterSlash = path.charCodeAt(at - 1) === SLASH;
    if (kind === 'name' && afterSlash) open = false;
    if (open && (kind !== 'directories' || afterSlash)) next[at] = 1;
    if (ends[at] === 1) open = true;
  }
  return next;
}

const SLASH = 0x2f;
