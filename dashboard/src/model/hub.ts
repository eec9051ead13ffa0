import { batch, effect, signal, untracked } from '@preact/signals';
import type { ApiEvent } from '../../../src/schema/api-events.ts';
import { api, CallFailure, wordsOf } from '../api/client.ts';
import { LiveStream, type StreamMessage } from '../api/live-stream.ts';
import { me, signIn } from '../api/sign-in.ts';
import { draftsOf } from './drafts.ts';
import { clearSettled, emptyInbox, loadInbox, takeRequests } from './inbox.ts';
import { forgetReadings } from './reading.ts';
import { page } from './router.ts';
import { dropSessions, emptySessions, listState, loadSessions, sortSessions, takeSessions } from './sessions.ts';
import { SessionView } from './session-view.ts';

/** Everything shown is derived from here: what is loaded once, and what the stream then reports. */
export const stream = new LiveStream(take);
export const view = signal<SessionView | undefined>(undefined);
export const meFailed = signal<string | undefined>(undefined);

/** The last sessions that were shown: going back to one finds it as it was left. */
const views = new Map<string, SessionView>();
const MAX_VIEWS = 5;

function keep(shown: SessionView): void {
  views.delete(shown.id);
  views.set(shown.id, shown);
  if (views.size > MAX_VIEWS) views.delete(views.keys().next().value ?? '');
}

/** Changes when the hub has a new store; positions and ids then mean something else. */
let store: string | undefined;
/** Until the stream has reported its starting point, events may be missed by both it and the first load. */
let hasPosition = false;

export function follow(): void {
  effect(() => {
    const signed = signIn.value.state === 'in';
    untracked(signed ? begin : end);
  });
  effect(() => {
    const shown = page.value;
    const id = shown.name === 'session' && signIn.value.state === 'in' ? shown.id : undefined;
    if (view.peek()?.id === id) return;
    const known = id === undefined ? undefined : views.get(id);
    const next = known ?? (id === undefined ? undefined : new SessionView(id));
    untracked(() => {
      if (next) keep(next);
      view.value = next;
      stream.wantEventsOf(id);
      // One that was shown before is shown at once, and brought up to date.
      void (known ? known.refresh() : next?.load());
    });
  });
  addEventListener('online', () => stream.retryNow());
  restWhileHidden();
}

const HIDDEN_MS = 60_000;

/**
 * A browser opens six connections to one host, and a stream occupies one permanently. Hidden tabs release theirs, all
 * but one, whose title keeps showing how much is waiting.
 */
function restWhileHidden(): void {
  let keepsOn = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  void navigator.locks?.request('claude-code-hub.stream', { ifAvailable: true }, (lock) => {
    keepsOn = lock !== null;
    return lock && new Promise<never>(() => undefined);
  });
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (!document.hidden) {
      // Nobody has a finger on the page yet.
      sortSessions();
      clearSettled();
      stream.resume();
    } else if (!keepsOn) timer = setTimeout(() => stream.suspend(), HIDDEN_MS);
  });
}

export async function loadMe(): Promise<void> {
  try {
    me.value = await api.me();
    meFailed.value = undefined;
  } catch (error) {
    if (error instanceof CallFailure && error.status === 401) return;
    meFailed.value = wordsOf(error);
  }
}

function begin(): void {
  if (signIn.value.state === 'in') draftsOf(signIn.value.principal.id);
  void loadMe();
  void loadInbox();
  stream.start();
}

function end(): void {
  stream.stop();
  store = undefined;
  hasPosition = false;
  forgetReadings();
  batch(() => {
    emptyInbox();
    emptySessions();
    views.clear();
    view.value = undefined;
  });
}

/** What may have been missed by the first load; or everything, if what is shown is no longer valid. */
function reload(all: boolean): void {
  void loadInbox();
  if (listState.peek().state !== 'loading') void loadSessions();
  const shown = view.peek();
  if (all) {
    views.clear();
    if (shown) keep(shown);
    void loadMe();
    void shown?.load();
  } else void shown?.refresh();
}

/** The last message about each counts: a session can be resumed from disk. */
function goneSessions(messages: readonly StreamMessage[]): Set<string> {
  const gone = new Set<string>();
  for (const message of messages) {
    if (message.name === 'removed') gone.add(message.data.sessionId);
    else if (message.name === 'session') gone.delete(message.data.sessionId);
  }
  return gone;
}

/** In order: an event replaces what was being written before it, not what is being written since. */
function takeEvents(shown: SessionView, messages: readonly StreamMessage[]): void {
  let events: ApiEvent[] = [];
  const flush = () => {
    if (events.length > 0) shown.takeEvents(events);
    events = [];
  };
  for (const message of messages) {
    if (message.name === 'event' && message.data.sessionId === shown.id) events.push(message.data);
    else if (message.name === 'writing' && message.data.sessionId === shown.id) {
      flush();
      shown.takeWriting(message.data);
    }
  }
  flush();
}

function take(messages: StreamMessage[]): void {
  let again: 'all' | 'missed' | undefined;
  batch(() => {
    const shown = view.peek();
    takeSessions(messages.flatMap((message) => (message.name === 'session' ? [message.data] : [])));
    const gone = goneSessions(messages);
    dropSessions(gone);
    if (shown && gone.has(shown.id)) shown.removed();
    takeRequests(messages.flatMap((message) => (message.name === 'request' ? [message.data] : [])));
    if (shown) takeEvents(shown, messages);
    for (const message of messages) {
      if (message.name === 'session' && message.data.sessionId === shown?.id) shown.takeSession(message.data);
      else if (message.name === 'reset') again = 'all';
      else if (message.name === 'live') {
        if (hasPosition && store !== message.data.store) again = 'all';
        else if (!hasPosition) again ??= 'missed';
        hasPosition = true;
        store = message.data.store;
        void shown?.catchUp();
      }
    }
  });
  if (again !== undefined) reload(again === 'all');
}
