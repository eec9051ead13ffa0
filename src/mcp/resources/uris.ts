/** The addresses of what a client can read. This file is loaded at every start: no imports. */

export const SESSIONS_URI = 'claude-code://sessions';

export const PARTS = ['transcript', 'diff'] as const;
export type Part = (typeof PARTS)[number];

export type Address =
  | { readonly kind: 'sessions' }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: Part; readonly id: string };

export function sessionUri(id: string, part?: Part): string {
  return `${SESSIONS_URI}/${encodeURIComponent(id)}${part === undefined ? '' : `/${part}`}`;
}

export function parseUri(uri: string): Address | undefined {
  if (uri === SESSIONS_URI) return { kind: 'sessions' };
  const [, encoded = '', , part] = /^claude-code:\/\/sessions\/([^/]{1,300})(\/([a-z]+))?$/.exec(uri) ?? [];
  const id = decoded(encoded);
  if (id === undefined) return undefined;
  if (part === undefined) return { kind: 'session', id };
  const known = PARTS.find((name) => name === part);
  return known && { kind: known, id };
}

function decoded(text: string): string | undefined {
  try {
    return text === '' ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
