import { computed, signal } from '@preact/signals';

/**
 * Pages are named in the fragment, so that the hub serves one file at one address, below whatever path a proxy uses.
 */
export type Page =
  | { readonly name: 'inbox' }
  | { readonly name: 'sessions' }
  | { readonly name: 'session'; readonly id: string; readonly tab: SessionTab }
  | { readonly name: 'new' }
  | { readonly name: 'audit'; readonly session: string | undefined }
  | { readonly name: 'tokens' }
  | { readonly name: 'unknown' };

export const SESSION_TABS = ['timeline', 'work', 'details'] as const;
export type SessionTab = (typeof SESSION_TABS)[number];

const fragment = signal(location.hash);
addEventListener('hashchange', () => {
  fragment.value = location.hash;
});

export const page = computed<Page>(() => parse(fragment.value));

export function parse(hash: string): Page {
  const [name = '', id, tab] = hash.replace(/^#\/?/, '').split('/').map(decode);
  if (name === '' || name === 'inbox' || name.startsWith('code=')) return { name: 'inbox' };
  if (name === 'sessions' && id)
    return { name: 'session', id, tab: SESSION_TABS.find((one) => one === tab) ?? 'timeline' };
  if (name === 'sessions' || name === 'new' || name === 'tokens') return { name };
  if (name === 'audit') return { name, session: id };
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
  tokens: '#/tokens',
  new: '#/new',
  session: (id: string, tab?: SessionTab) =>
    `#/sessions/${encodeURIComponent(id)}${tab === undefined || tab === 'timeline' ? '' : `/${tab}`}`,
  auditOf: (id: string) => `#/audit/${encodeURIComponent(id)}`,
};

export function go(link: string): void {
  location.hash = link;
}
