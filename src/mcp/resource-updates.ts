import type { EngineClient } from '../engine/client.ts';

/** The addresses of what a client can read. This file is loaded at every start: no imports. */

export const SESSIONS_URI = 'claude-code://sessions';

const PARTS = ['transcript', 'diff'] as const;
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

/** A working session changes many times a second, and every notified client reads it again. */
const GATHER_MS = 500;

export interface UpdateListener {
  updated(uri: string): void;
  listChanged(): void;
}

/** Reports which resources have changed, once that is stored, each at most twice a second. Returns an unsubscribe function. */
export function watchResources(
  engine: Pick<EngineClient, 'clock' | 'onNotice' | 'stored'>,
  listener: UpdateListener,
): () => void {
  const changed = new Set<string>();
  let isListChanged = false;
  /** Of the report that is due or waits for the store. */
  let cancel: (() => void) | undefined;
  const stopped = new AbortController();
  const report = (): void => {
    const uris = [...changed];
    const isNewList = isListChanged;
    changed.clear();
    isListChanged = false;
    const tell = (): void => {
      cancel = undefined;
      if (stopped.signal.aborted) return;
      if (isNewList) listener.listChanged();
      for (const uri of uris) listener.updated(uri);
      if (changed.size > 0) reportSoon();
    };
    const stored = engine.stored();
    if (!stored) return tell();
    stored.then(tell, () => {
      for (const uri of uris) changed.add(uri);
      isListChanged ||= isNewList;
      cancel = undefined;
      reportSoon();
    });
  };
  const reportSoon = (): void => {
    if (!stopped.signal.aborted) cancel ??= engine.clock.after(GATHER_MS, report);
  };
  const unsubscribe = engine.onNotice((notice) => {
    const { kind, sessionId, atRest } = notice;
    changed.add(SESSIONS_URI).add(sessionUri(sessionId));
    if (kind === 'event') changed.add(sessionUri(sessionId, 'transcript'));
    if (atRest) changed.add(sessionUri(sessionId, 'diff'));
    if (kind === 'added' || kind === 'forgotten') isListChanged = true;
    reportSoon();
  });
  return () => {
    stopped.abort();
    unsubscribe();
    cancel?.();
  };
}
