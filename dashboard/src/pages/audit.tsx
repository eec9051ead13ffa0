import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiAuditEntry } from '../../../src/schema/api-admin.ts';
import { api, wordsOf } from '../api/client.ts';
import { filterBy, links, type Query } from '../model/router.ts';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { Visible } from '../parts/plain-text.tsx';
import { Time } from '../parts/time.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { costWords, shortId } from '../text/words.ts';

const KINDS = {
  '': 'Everything',
  decision: 'Decisions',
  request: 'Requests',
  start: 'Starts',
  end: 'Ends',
  tool_call: 'Calls',
  server: 'Hub',
} as const;

type Loaded =
  | { readonly state: 'loading' }
  | { readonly state: 'loaded'; readonly entries: readonly ApiAuditEntry[]; readonly next: string | undefined }
  | { readonly state: 'failed'; readonly why: string };

const TYPING_PAUSE_MS = 250;
const FILTERS = ['search', 'principal', 'tool', 'decision', 'session', 'kind', 'since', 'until'] as const;
type Filter = (typeof FILTERS)[number];

export function AuditPage({ query }: { query: Query }) {
  const main = useRef<HTMLElement>(null);
  const loaded = useSignal<Loaded>({ state: 'loading' });
  const latest = useRef(0);
  const read = async (before?: { entries: readonly ApiAuditEntry[]; next: string | undefined }) => {
    const mine = ++latest.current;
    try {
      const { entries, next } = await api.audit({ ...asked(query), after: before?.next, limit: 200 });
      if (mine === latest.current)
        loaded.value = { state: 'loaded', entries: [...(before?.entries ?? []), ...entries], next };
    } catch (error) {
      if (!before && mine === latest.current) loaded.value = { state: 'failed', why: wordsOf(error) };
    }
  };
  const wanted = JSON.stringify(asked(query));
  useEffect(() => {
    const timer = setTimeout(() => void read(), latest.current === 0 ? 0 : TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [wanted]);
  const set = (part: Partial<Record<Filter, string>>) => filterBy('audit', { ...query, ...part });
  const field = (name: Filter, label: string, isDate = false) => {
    const shared = {
      value: query[name] ?? '',
      spellcheck: false,
      'data-slash': name === 'search' || undefined,
      onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => set({ [name]: currentTarget.value }),
    };
    return (
      <label class="field">
        <span>{label}</span>
        {isDate ? <input type="date" {...shared} /> : <input type="search" {...shared} />}
      </label>
    );
  };
  const isFiltered = FILTERS.some((name) => (query[name] ?? '') !== '');
  const state = loaded.value;
  return (
    <main class="page audit" id="content" tabIndex={-1} ref={main}>
      <div class="page-header">
        <h1>Audit</h1>
        <p class="quiet">Newest first</p>
        <button type="button" class="button small" hidden={!isFiltered} onClick={() => filterBy('audit', {})}>
          Show all
        </button>
      </div>
      <search class="filters">
        {field('search', 'Search')}
        <details class="more" open={matchMedia('(min-width: 48rem)').matches || isFiltered}>
          <summary>Filters</summary>
          <div class="audit-filters">
            {field('principal', 'Person')}
            {field('tool', 'Tool')}
            <label class="field">
              <span>Decision</span>
              <select
                value={query['decision'] ?? ''}
                onChange={({ currentTarget }) => set({ decision: currentTarget.value })}
              >
                <option value="">Any</option>
                <option value="allow">Allowed</option>
                <option value="deny">Denied</option>
              </select>
            </label>
            {field('session', 'Session')}
            {field('since', 'From', true)}
            {field('until', 'To', true)}
          </div>
        </details>
      </search>
      <div class="chips" role="group" aria-label="Kind">
        {(Object.keys(KINDS) as (keyof typeof KINDS)[]).map((name) => (
          <button
            type="button"
            class="chip"
            aria-pressed={(query['kind'] ?? '') === name}
            onClick={() => set({ kind: name })}
          >
            {KINDS[name]}
          </button>
        ))}
      </div>
      {state.state === 'loading' ? (
        <Loading what="Loading the audit trail…" />
      ) : state.state === 'failed' ? (
        <Failed what="The audit trail could not be loaded" why={state.why} onRetry={() => void read()} />
      ) : state.entries.length === 0 ? (
        <Empty title="Nothing recorded" />
      ) : (
        <VirtualList
          items={state.entries.map((entry, index) => ({ entry, index }))}
          keyOf={({ index }) => String(index)}
          render={({ entry }) => <Entry entry={entry} />}
          estimate={56}
          scroller={main}
          label="Audit entries, newest first"
          onNearEnd={() => {
            if (state.next !== undefined) void read(state);
          }}
        />
      )}
    </main>
  );
}

/** Whole days of this browser's calendar, as the API takes them. */
function asked({ since, until, decision, ...query }: Query): Record<string, string> {
  const day = (text: string, end: boolean) => {
    const at = new Date(`${text}T${end ? '23:59:59.999' : '00:00:00'}`);
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
  };
  const [from, to] = [day(since ?? '', false), day(until ?? '', true)];
  return {
    ...Object.fromEntries(Object.entries(query).filter(([name]) => FILTERS.includes(name as Filter))),
    ...(decision === 'allow' || decision === 'deny' ? { decision } : {}),
    ...(from !== undefined && { since: from }),
    ...(to !== undefined && { until: to }),
  };
}

/** A turn that was cut off cost more than is recorded. */
function unknownIn(details: ApiAuditEntry['details']): { costUnknown?: true } {
  return details?.['costUnknown'] === true ? { costUnknown: true } : {};
}

function Entry({ entry }: { entry: ApiAuditEntry }) {
  const { time, kind, session, principal, who, by, what, target, outcome, cost, details } = entry;
  const more = Object.entries(details ?? {});
  const rest = [
    ...(by !== undefined && kind !== 'decision' ? [] : [who]),
    ...(session === undefined
      ? []
      : [
          <a href={links.session(session)} class="mono">
            {shortId(session)}
          </a>,
        ]),
    ...(cost === undefined ? [] : [costWords({ totalCostUsd: cost, ...unknownIn(details) })]),
  ];
  return (
    <div class="audit-row">
      <span class="quiet">
        <Time at={time} />
      </span>
      <span class="tag">{kind.replaceAll('_', ' ')}</span>
      <span class="audit-what">
        <Visible text={what} />
        {target !== undefined && target !== '' && (
          <>
            {' '}
            <span class="mono">
              <Visible text={target} />
            </span>
          </>
        )}
        {outcome !== undefined && (
          <>
            {' → '}
            <strong>
              <Visible text={outcome} />
            </strong>
          </>
        )}
        {by !== undefined && (
          <>
            {' by '}
            <a href={`${links.audit}?principal=${encodeURIComponent(by)}`} title={principal}>
              <Visible text={by} />
            </a>
          </>
        )}
      </span>
      <span class="quiet">
        {rest.map((part, index) => (
          <>
            {index > 0 && ' · '}
            {part}
          </>
        ))}
      </span>
      {more.length > 0 && (
        <span class="audit-details quiet mono">
          <Visible
            text={more
              .map(([label, value]) => `${label}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
              .join('  ')}
          />
        </span>
      )}
    </div>
  );
}
