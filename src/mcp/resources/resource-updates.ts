import type { EngineClient } from '../../engine/client.ts';
import { SESSIONS_URI, sessionUri } from './uris.ts';

/** A working session changes many times a second, and every notified client reads it again. */
const GATHER_MS = 500;

export interface UpdateListener {
  updated(uri: string): void;
  listChanged(): void;
}

/** Reports which resources have changed, each at most twice a second. Returns an unsubscribe function. */
export function watchResources(engine: Pick<EngineClient, 'clock' | 'onNotice'>, listener: UpdateListener): () => void {
  const changed = new Set<string>();
  let isListChanged = false;
  let cancel: (() => void) | undefined;
  const tell = (): void => {
    cancel = undefined;
    if (isListChanged) listener.listChanged();
    isListChanged = false;
    const uris = [...changed];
    changed.clear();
    for (const uri of uris) listener.updated(uri);
  };
  const unsubscribe = engine.onNotice((notice) => {
    const { kind, sessionId, atRest } = notice;
    changed.add(SESSIONS_URI).add(sessionUri(sessionId));
    if (kind === 'event') changed.add(sessionUri(sessionId, 'transcript'));
    if (atRest) changed.add(sessionUri(sessionId, 'diff'));
    if (kind === 'added' || kind === 'forgotten') isListChanged = true;
    cancel ??= engine.clock.after(GATHER_MS, tell);
  });
  return () => {
    unsubscribe();
    cancel?.();
  };
}
