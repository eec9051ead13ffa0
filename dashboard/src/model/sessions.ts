import { computed, signal } from '@preact/signals';
import type { ApiSession, ModelsAnswer } from '../../../src/schema/api.ts';
import { api, wordsOf } from '../api/client.ts';

const PAGE = 200;
export const TYPING_PAUSE_MS = 200;

export const STATUS_FILTERS = {
  all: { label: 'All', status: undefined },
  waiting: { label: 'Waiting', status: 'waiting_permission' },
  working: { label: 'Working', status: 'running' },
  rest: { label: 'At rest', status: 'idle,error' },
  cancelled: { label: 'Cancelled', status: 'cancelled' },
  archived: { label: 'Archived', status: undefined },
} as const;
export type StatusFilter = keyof typeof STATUS_FILTERS;

export const search = signal('');
export const statusFilter = signal<StatusFilter>('all');

/** As of the last message about each. */
const known = signal<ReadonlyMap<string, ApiSession>>(new Map());
/**
 * In the order of the first load: a list that re-sorts itself while being read is hard to read. New ones go on top, and
 * so does one that starts to match the filter.
 */
const order = signal<readonly string[]>([]);
const next = signal<string | undefined>(undefined);
export const listState = signal<
  { readonly state: 'loading' | 'loaded' } | { readonly state: 'failed'; readonly why: string }
>({
  state: 'loading',
});

export const sessions = computed(() =>
  order.value.flatMap((id) => known.value.get(id) ?? []).filter((row) => isArchived(row) === filters().archived),
);
export const hasMore = computed(() => next.value !== undefined);

/** All that this page knows of, whatever the list is filtered by, latest first. */
export const recent = computed(() =>
  [...known.value.values()].sort((a, b) => (a.lastActiveAt < b.lastActiveAt ? 1 : -1)),
);

/** Directories that sessions worked in, latest first, as suggestions for new ones. A worktree belongs to its project. */
export const directories = computed(() =>
  [...new Set(recent.value.map(({ cwd, workspace }) => workspace?.origin ?? cwd))].slice(0, 50),
);

type OfferedModel = ModelsAnswer['models'][number];

const named = (value: string): OfferedModel => ({ value, name: value, description: '' });
const offered = signal<readonly OfferedModel[]>(['opus', 'sonnet', 'haiku'].map(named));

/** What Claude Code offers, and what sessions have used. */
export const models = computed(() => {
  const values = new Set(offered.value.map(({ value }) => value));
  const used = new Set(recent.value.flatMap(({ model }) => model ?? []));
  return [...offered.value, ...[...used].filter((name) => !values.has(name)).map(named)];
});

/** What Claude Code offers is known once a session has started; until then its names for the current models do. */
export function loadModels(): void {
  api.models().then(
    ({ models: known }) => {
      if (known.length > 0) offered.value = known;
    },
    () => undefined,
  );
}

let generation = 0;
let underWay: Promise<void> | undefined;

export async function loadSessions(): Promise<void> {
  const mine = ++generation;
  if (listState.value.state === 'failed') listState.value = { state: 'loading' };
  try {
    const page = await api.sessions({ ...filters(), limit: PAGE });
    if (mine !== generation) return;
    remember(page.sessions);
    order.value = page.sessions.map(({ sessionId }) => sessionId);
    next.value = page.next;
    listState.value = { state: 'loaded' };
  } catch (error) {
    if (mine === generation && listState.value.state !== 'loaded') {
      listState.value = { state: 'failed', why: wordsOf(error) };
    }
  }
}

/** For what is found by name, and for what was last used, whatever the list is filtered by. */
export async function findSessions(words: string): Promise<void> {
  await api.sessions({ search: words, limit: PAGE }).then(
    (page) => remember(page.sessions),
    () => undefined,
  );
}

export function loadMore(): void {
  underWay ??= readMore().finally(() => (underWay = undefined));
}

async function readMore(): Promise<void> {
  const mine = generation;
  if (next.value === undefined) return;
  try {
    const page = await api.sessions({ ...filters(), limit: PAGE, after: next.value });
    if (mine !== generation) return;
    remember(page.sessions);
    const ids = new Set(order.value);
    order.value = [...order.value, ...page.sessions.map(({ sessionId }) => sessionId).filter((id) => !ids.has(id))];
    next.value = page.next;
  } catch {
    // Scrolling tries again.
  }
}

export function takeSessions(rows: readonly ApiSession[]): void {
  if (rows.length === 0) return;
  remember(rows);
  if (listState.value.state !== 'loaded') return;
  const ids = new Set(order.value);
  const fresh = rows.filter((row) => !ids.has(row.sessionId) && matches(row)).map(({ sessionId }) => sessionId);
  const added = [...new Set(fresh)].reverse();
  if (added.length > 0) order.value = [...added, ...order.value];
}

export function dropSessions(gone: ReadonlySet<string>): void {
  if (gone.size === 0) return;
  known.value = new Map([...known.value].filter(([id]) => !gone.has(id)));
  order.value = order.value.filter((id) => !gone.has(id));
}

/** Sorted by latest activity again: for a moment when no one is reading. */
export function sortSessions(): void {
  const at = (id: string) => known.value.get(id)?.lastActiveAt ?? '';
  order.value = [...order.value].sort((a, b) => at(b).localeCompare(at(a)));
}

export function emptySessions(): void {
  generation++;
  known.value = new Map();
  order.value = [];
  next.value = undefined;
  listState.value = { state: 'loading' };
}

function remember(rows: readonly ApiSession[]): void {
  const all = new Map(known.value);
  for (const row of rows) all.set(row.sessionId, row);
  known.value = all;
}

function filters() {
  return {
    search: search.value.trim(),
    status: STATUS_FILTERS[statusFilter.value].status,
    archived: statusFilter.value === 'archived',
  };
}

function isArchived({ archivedAt }: ApiSession): boolean {
  return archivedAt !== undefined;
}

function matches(row: ApiSession): boolean {
  const { status, search: words, archived } = filters();
  if (isArchived(row) !== archived) return false;
  if (status !== undefined && !status.split(',').includes(row.status)) return false;
  const looked = `${row.sessionId} ${row.title ?? ''} ${row.cwd} ${row.owner.id} ${row.owner.name}`.toLowerCase();
  return looked.includes(words.toLowerCase());
}
