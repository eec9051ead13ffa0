import type { EngineNotice } from '../../engine/notices.ts';
import type { Clock } from '../../engine/clock.ts';
import type { Session } from '../../engine/session.ts';
import { SESSIONS_URI, sessionUri } from './uris.ts';

/** A working session changes many times a second, and every notified client reads it again. */
const GATHER_MS = 500;

export interface UpdateListener {
  updated(uri: string): void;
  listChanged(): void;
}

/** What a client sees of the engine, and what is needed to watch it. */
export interface WatchedEngine {
  readonly clock: Clock;
  sees(session: Session): boolean;
  onNotice(listener: (notice: EngineNotice) => void): () => void;
}

/** Reports which resources have changed, each at most twice a second. Returns an unsubscribe function. */
export function watchResources(engine: WatchedEngine, listener: UpdateListener): () => void {
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
    if (notice.kind === 'tools' || !engine.sees(notice.session)) return;
    const { session } = notice;
    changed.add(SESSIONS_URI).add(sessionUri(session.id));
    if (notice.kind === 'event') changed.add(sessionUri(session.id, 'transcript'));
    if (session.atRest) changed.add(sessionUri(session.id, 'diff'));
    if (notice.kind === 'added' || notice.kind === 'forgotten') isListChanged = true;
    cancel ??= engine.clock.after(GATHER_MS, tell);
  });
  return () => {
    unsubscribe();
    cancel?.();
  };
}
