import { computed, signal } from '@preact/signals';
import type { ApiRequest } from '../../../src/schema/api.ts';
import { api, wordsOf } from '../api/client.ts';

const FIRST_PAGE = 20;
const PAGE = 200;

/** Every request that this page knows about, by id. */
const requests = signal<ReadonlyMap<string, ApiRequest>>(new Map());
/** What the inbox lists. A settled request stays in place until it is cleared: nothing moves under a finger. */
const listed = signal<readonly string[]>([]);
export const inboxState = signal<
  { readonly state: 'loading' | 'loaded' } | { readonly state: 'failed'; readonly why: string }
>({
  state: 'loading',
});

export const inbox = computed(() => listed.value.flatMap((id) => requests.value.get(id) ?? []));
export const openCount = computed(() => inbox.value.filter(({ status }) => status === 'open').length);
export const settledCount = computed(() => inbox.value.length - openCount.value);

export function request(id: string): ApiRequest | undefined {
  return requests.value.get(id);
}

export function openRequestsOf(sessionId: string): ApiRequest[] {
  return inbox.value.filter((one) => one.sessionId === sessionId && one.status === 'open');
}

export function takeRequests(rows: readonly ApiRequest[]): void {
  if (rows.length === 0) return;
  const known = new Map(requests.value);
  const ids = new Set(listed.value);
  const added: ApiRequest[] = [];
  for (const row of rows) {
    // An outcome is final: an older row that arrives late changes nothing.
    if (known.get(row.requestId)?.status === 'settled' && row.status === 'open') continue;
    known.set(row.requestId, row);
    if (row.status === 'open' && !ids.has(row.requestId)) added.push(row);
  }
  requests.value = known;
  if (added.length === 0) return;
  const fresh = inAge(added);
  // While nobody can have read anything yet, all of it is put in order; later ones go to the end, where they move nothing.
  listed.value =
    inboxState.value.state === 'loading' ? grouped([...inbox.value, ...fresh]) : [...listed.value, ...idsOf(fresh)];
}

export function clearSettled(): void {
  listed.value = grouped(inbox.value.filter(({ status }) => status === 'open'));
}

function inAge(rows: readonly ApiRequest[]): ApiRequest[] {
  return [...rows].sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));
}

function idsOf(rows: readonly ApiRequest[]): string[] {
  return rows.map(({ requestId }) => requestId);
}

/** Oldest first, those of one session together. */
function grouped(rows: readonly ApiRequest[]): string[] {
  const bySession = new Map<string, ApiRequest[]>();
  for (const row of inAge(rows)) bySession.set(row.sessionId, [...(bySession.get(row.sessionId) ?? []), row]);
  return [...bySession.values()].flatMap(idsOf);
}

/** Requests of one session that stand together. */
export interface Group {
  readonly key: string;
  readonly requests: readonly ApiRequest[];
}

export const groups = computed(() => {
  const found: { key: string; requests: ApiRequest[] }[] = [];
  for (const row of inbox.value) {
    const last = found.at(-1);
    if (last?.requests[0]?.sessionId === row.sessionId) last.requests.push(row);
    else found.push({ key: `g${row.requestId}`, requests: [row] });
  }
  return found;
});

/** Everything currently open. What was open here and is missing from it has been settled in the meantime. */
export async function loadInbox(): Promise<void> {
  const before = new Set(listed.value.filter((id) => requests.value.get(id)?.status === 'open'));
  try {
    let after: string | undefined;
    do {
      const page = await api.requests({ limit: after === undefined ? FIRST_PAGE : PAGE, after });
      takeRequests(page.requests);
      for (const { requestId } of page.requests) before.delete(requestId);
      inboxState.value = { state: 'loaded' };
      after = page.next;
    } while (after !== undefined);
    forget([...before].filter((id) => requests.value.get(id)?.status === 'open'));
  } catch (error) {
    if (inboxState.value.state !== 'loaded') inboxState.value = { state: 'failed', why: wordsOf(error) };
  }
}

export function emptyInbox(): void {
  requests.value = new Map();
  listed.value = [];
  inboxState.value = { state: 'loading' };
}

function forget(ids: readonly string[]): void {
  if (ids.length === 0) return;
  const gone = new Set(ids);
  requests.value = new Map([...requests.value].filter(([id]) => !gone.has(id)));
  listed.value = listed.value.filter((id) => !gone.has(id));
}
