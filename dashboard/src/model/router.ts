import { computed, signal } from '@preact/signals';

/**
 * Pages are named in the fragment, so that the hub serves one file at one address, below whatever path a proxy uses.
 */
export type Page =
  /** All that waits, or one request that a notification leads to. */
  | { readonly name: 'inbox'; readonly request?: string }
  | { readonly name: 'sessions'; readonly query: Query }
  | { readonly name: 'session'; readonly id: string; readonly tab: SessionTab }
  | { readonly name: 'new' }
  | { readonly name: 'audit'; readonly query: Query }
  | { readonly name: 'rules' }
  | { readonly name: 'tokens' }
  | { readonly name: 'costs' }
  | { readonly name: 'unknown' };

/** What a list is searched and filtered by: part of the address, so that it survives a reload and can be passed on. */
export type Query = Readonly<Record<string, string>>;

export const SESSION_TABS = ['timeline', 'work', 'details'] as const;
export type SessionTab = (typeof SESSION_TABS)[number];

const fragment = signal(location.hash);
let entries = 0;

/** Numbers the entries of the history: one that was there before is returned to, and keeps its place. */
function enter(): void {
  const { entry } = (history.state ?? {}) as { entry?: string };
  if (entry === undefined) history.replaceState({ entry: `${performance.timeOrigin}.${++entries}` }, '', location.href);
  fragment.value = location.hash;
}
enter();
addEventListener('hashchange', enter);

/** Identifies the current entry of the history. */
export function historyEntry(): string {
  return (history.state as { entry?: string } | null)?.entry ?? '';
}

export const page = computed<Page>(() => parse(fragment.value));

export function parse(hash: string): Page {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?');
  const [name = '', id, tab] = path.split('/').map(decode);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (name === '' || name === 'inbox' || name.startsWith('code=')) return { name: 'inbox' };
  if (name === 'requests' && id) return { name: 'inbox', request: id };
  if (name === 'sessions' && id)
    return { name: 'session', id, tab: SESSION_TABS.find((one) => one === tab) ?? 'timeline' };
  if (name === 'sessions') return { name, query };
  if (name === 'new' || name === 'rules' || name === 'tokens' || name === 'costs') return { name };
  if (name === 'audit') return { name, query: id ? { session: id, ...query } : query };
  return { name: 'unknown' };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const links = {
  inbox: '#/',
  sessions: '#/sessions',
  audit: '#/audit',
  costs: '#/costs',
  rules: '#/rules',
  tokens: '#/tokens',
  new: '#/new',
  session: (id: string, tab?: SessionTab) =>
    `#/sessions/${encodeURIComponent(id)}${tab === undefined || tab === 'timeline' ? '' : `/${tab}`}`,
  auditOf: (id: string) => `#/audit/${encodeURIComponent(id)}`,
};

/** The page as it is, searched or filtered differently. Not a step back in the history. */
export function filterBy(page: 'sessions' | 'audit', query: Query): void {
  const filled = Object.entries(query).filter(([, value]) => value !== '');
  const search = new URLSearchParams(filled).toString();
  history.replaceState(history.state, '', `#/${page}${search === '' ? '' : `?${search}`}`);
  fragment.value = location.hash;
}

export function go(link: string): void {
  location.hash = link;
}
