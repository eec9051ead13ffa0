import { batch, signal, type Signal } from '@preact/signals';
import type { ApiSession, ApiSessionDetail } from '../../../src/schema/api.ts';
import type { ApiEvent, StreamMessages } from '../../../src/schema/api-events.ts';
import { api, CallFailure, wordsOf } from '../api/client.ts';
import { Timeline, type ToolCall } from '../timeline/timeline.ts';
import { takeRequests } from './inbox.ts';

/** Enough to fill a screen at once; earlier events are loaded on scrolling up. */
const TAIL = 300;
const PAGE = 1000;
/** Small enough that reading and placing them is not felt while scrolling. */
const PAGE_BACK = 300;

export type ViewState =
  { readonly state: 'loading' | 'shown' | 'missing' } | { readonly state: 'failed'; readonly why: string };

interface InheritedPart {
  readonly sessionId: string;
  readonly timeline: Timeline;
}

export type Inherited =
  | { readonly state: 'none' | 'loading' }
  /** Oldest first: a copy of a copy inherited from both. Without `isWhole`, the first of them is gone. */
  | { readonly state: 'shown'; readonly parts: readonly InheritedPart[]; readonly isWhole: boolean }
  | { readonly state: 'failed'; readonly why: string };

/** A session that changes all the time is shown as it was a moment ago. */
const MAX_ATTEMPTS = 5;

/**
 * One session as its page shows it: loaded from its end, kept up to date by the stream, repaired where that left a gap.
 */
export class SessionView {
  readonly id: string;
  readonly state = signal<ViewState>({ state: 'loading' });
  readonly detail = signal<ApiSessionDetail | undefined>(undefined);
  /** Increases with every change of the timeline. */
  readonly revision = signal(0);
  /** Ids below this one have not been read. */
  readonly readFrom = signal(1);
  readonly droppedThrough = signal(0);
  /** Increases when somebody has applied, discarded or restored its work. */
  readonly workActions = signal(0);
  /** Its worktree was discarded, which is final. Only the hub says so, in an event or in the answer to a discard. */
  readonly isDiscarded = signal(false);
  /** What Claude is writing; its event replaces it. */
  readonly writing = signal('');
  /** When this turn began and when Claude was last heard of, by this browser's clock. */
  readonly workingSince = signal<number | undefined>(undefined);
  readonly heardAt = signal(Date.now());
  /** What a copy has of its original, once somebody wants to see it. */
  readonly inherited = signal<Inherited>({ state: 'none' });
  timeline = new Timeline();
  #events: ApiEvent[] = [];
  #reading: Promise<void> | undefined;
  /** How often the stream has told of a change that may be missing from what is being read. */
  #heard = 0;
  #readAgain = false;
  #readsBack = false;
  #readingAll: Promise<void> | undefined;
  readonly #folded = new Map<string, boolean>();
  readonly #unfolded = new Map<string, Signal<boolean>>();

  constructor(id: string) {
    this.id = id;
  }

  get lastId(): number {
    return this.#events.at(-1)?.id ?? this.readFrom.value - 1;
  }

  get hasEarlier(): boolean {
    return this.readFrom.value > Math.max(1, this.droppedThrough.value + 1);
  }

  async load(): Promise<void> {
    const heard = this.#heard;
    try {
      const detail = await api.session(this.id);
      const after = Math.max(0, detail.lastEventId - TAIL);
      const page = await api.events(this.id, { after, limit: PAGE });
      batch(() => {
        this.readFrom.value = after + 1;
        this.droppedThrough.value = page.droppedThrough;
        this.#events = [...page.events];
        this.#rebuild();
        this.#takeDetail(detail);
        this.state.value = { state: 'shown' };
      });
      const isBehind = heard !== this.#heard;
      if (isBehind) void this.refresh();
      if (isBehind || page.lastId > this.lastId) await this.catchUp();
    } catch (error) {
      const missing = error instanceof CallFailure && error.status === 404;
      if (this.state.value.state === 'shown' && !missing) return;
      this.state.value = missing ? { state: 'missing' } : { state: 'failed', why: wordsOf(error) };
    }
  }

  /** Reads what is stored after the last shown event, one call at a time. */
  catchUp(): Promise<void> {
    if (this.#reading) {
      this.#readAgain = true;
      return this.#reading;
    }
    this.#reading = this.#readAfter().finally(() => {
      this.#reading = undefined;
      if (this.#readAgain) {
        this.#readAgain = false;
        void this.catchUp();
      }
    });
    return this.#reading;
  }

  /** The stream does not report everything about a session: the result and the words of queued messages are read. */
  async refresh(): Promise<void> {
    if (this.state.value.state !== 'shown') return this.load();
    try {
      for (let attempt = 1; ; attempt++) {
        const heard = this.#heard;
        const detail = await api.session(this.id);
        // What the stream has told in the meantime may be newer.
        if (heard === this.#heard || attempt === MAX_ATTEMPTS) return this.#takeDetail(detail);
      }
    } catch {
      // The stream says when there is more.
    }
  }

  takeSession(row: ApiSession): void {
    const { detail } = this;
    this.#heard++;
    if (!detail.value) return;
    const isStale = row.state !== detail.value.state || String(row.queuedIds) !== String(detail.value.queuedIds);
    if (row.status !== 'running') this.workingSince.value = undefined;
    // What is not in the row any more is not so any more.
    const { options, needs, result, requests, queued, lastEventId } = detail.value;
    detail.value = { ...row, options, needs, requests, queued, lastEventId, ...(result && { result }) };
    if (isStale) void this.refresh();
  }

  /** Removed by retention. */
  removed(): void {
    this.state.value = { state: 'missing' };
  }

  takeWriting({ at, text, workedMs, quietMs }: StreamMessages['writing']): void {
    this.workingSince.value = Date.now() - workedMs;
    this.heardAt.value = Date.now() - quietMs;
    if (at === 0) this.writing.value = text;
    else if (at === this.writing.value.length) this.writing.value += text;
  }

  takeEvents(events: readonly ApiEvent[]): void {
    if (this.state.value.state !== 'shown') {
      this.#heard++;
      return;
    }
    let isBehind = false;
    this.heardAt.value = Date.now();
    for (const event of events) {
      if (endsWriting(event)) this.writing.value = '';
      const { lastId } = this;
      if (event.id === lastId + 1) this.#append(event);
      else if (event.id === lastId) this.#replaceLast(event);
      else if (event.id > lastId) isBehind = true;
    }
    this.revision.value++;
    if (isBehind) void this.catchUp();
  }

  readEarlier(): void {
    if (!this.hasEarlier || this.state.value.state !== 'shown') return;
    if (this.#readsBack) return;
    this.#readsBack = true;
    void this.#readBack(PAGE_BACK).finally(() => (this.#readsBack = false));
  }

  /** Everything back to the first event. Every letter of a search asks for it. */
  readAll(): Promise<void> {
    return (this.#readingAll ??= this.#readToStart().finally(() => (this.#readingAll = undefined)));
  }

  async #readToStart(): Promise<void> {
    while (this.hasEarlier && this.state.value.state === 'shown') {
      const before = this.readFrom.value;
      this.#readsBack = true;
      await this.#readBack(PAGE).finally(() => (this.#readsBack = false));
      if (this.readFrom.value === before) return;
    }
  }

  async readInherited(): Promise<void> {
    const parts: InheritedPart[] = [];
    let isWhole = true;
    this.inherited.value = { state: 'loading' };
    for (let origin = this.detail.value?.forkOf; origin;) {
      const { sessionId, through = Infinity } = origin;
      try {
        const { forkOf } = await api.session(sessionId);
        parts.unshift({ sessionId, timeline: await timelineThrough(sessionId, through) });
        origin = forkOf;
      } catch (error) {
        if (parts.length === 0) {
          this.inherited.value = { state: 'failed', why: wordsOf(error) };
          return;
        }
        isWhole = false;
        break;
      }
    }
    this.inherited.value = { state: 'shown', parts, isWhole };
  }

  isFolded = (call: ToolCall): boolean => this.#folded.get(call.id) ?? false;

  fold(call: ToolCall, folded: boolean): void {
    this.#folded.set(call.id, folded);
    this.revision.value++;
  }

  /** Whether a row shows all it has. */
  unfolded(key: string): Signal<boolean> {
    const known = this.#unfolded.get(key) ?? signal(false);
    this.#unfolded.set(key, known);
    return known;
  }

  async #readAfter(): Promise<void> {
    try {
      for (;;) {
        const page = await api.events(this.id, { after: this.lastId, limit: PAGE });
        for (const event of page.events) if (event.id > this.lastId) this.#append(event);
        this.revision.value++;
        if (page.events.length === 0 || page.lastId <= this.lastId) return;
      }
    } catch {
      // The connection status shows that the page is behind; the next message or connection retries.
    }
  }

  async #readBack(count: number): Promise<void> {
    const after = Math.max(0, this.readFrom.value - 1 - count, this.droppedThrough.value);
    try {
      const page = await api.events(this.id, { after, limit: count });
      // Another call was faster, and has read further back.
      if (after >= this.readFrom.value - 1) return;
      batch(() => {
        const earlier = page.events.filter(({ id }) => id < this.readFrom.value);
        this.#events = [...earlier, ...this.#events];
        this.readFrom.value = after + 1;
        this.droppedThrough.value = page.droppedThrough;
        this.#rebuild();
      });
    } catch {
      // Scrolling tries again.
    }
  }

  #takeDetail(detail: ApiSessionDetail): void {
    this.detail.value = detail;
    takeRequests(detail.requests);
  }

  #append(event: ApiEvent): void {
    this.#events.push(event);
    this.#place(event);
    if (WORK_ACTIONS.has(event.data.kind)) this.workActions.value++;
  }

  /** Text that is being written grows within one event. */
  #replaceLast(event: ApiEvent): void {
    const last = this.#events.at(-1);
    if (!last || JSON.stringify(last.data) === JSON.stringify(event.data)) return;
    this.#events[this.#events.length - 1] = event;
    this.#rebuild();
  }

  #rebuild(): void {
    this.timeline = new Timeline();
    for (const event of this.#events) this.#place(event);
    this.revision.value++;
  }

  #place(event: ApiEvent): void {
    this.timeline.add(event);
    if (event.data.kind === 'discard') this.isDiscarded.value = true;
  }
}

const WORK_ACTIONS: ReadonlySet<ApiEvent['data']['kind']> = new Set(['apply', 'discard', 'rewind']);

function endsWriting({ data }: ApiEvent): boolean {
  if (data.kind === 'message') return data.role === 'assistant' && data.parentToolUseId === undefined;
  return data.kind === 'result' || data.kind === 'error' || data.kind === 'prompt';
}

/** What happened in a session up to an event. */
async function timelineThrough(sessionId: string, through: number): Promise<Timeline> {
  const timeline = new Timeline();
  for (let after = 0, more = true; more;) {
    const page = await api.events(sessionId, { after, limit: PAGE });
    for (const event of page.events) if (event.id <= through) timeline.add(event);
    after = page.events.at(-1)?.id ?? page.lastId;
    more = page.events.length > 0 && after < Math.min(page.lastId, through);
  }
  return timeline;
}
