import { effect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiSession } from '../../../src/schema/api.ts';
import { me } from '../api/sign-in.ts';
import { filterBy, links, type Query } from '../model/router.ts';
import { isUnread } from '../model/seen.ts';
import {
  hasMore,
  listState,
  loadMore,
  loadSessions,
  search,
  sessions,
  STATUS_FILTERS,
  statusFilter,
  TYPING_PAUSE_MS,
  type StatusFilter,
} from '../model/sessions.ts';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { Project, Visible } from '../parts/plain-text.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { activityWords, costTitle, costWords, shortId } from '../text/words.ts';

export function SessionsPage({ query }: { query: Query }) {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    filterList(query['search'] ?? '', isFilter(query['status']) ? query['status'] : 'all');
  }, [query['search'], query['status']]);
  return (
    <main class="page sessions" id="content" tabIndex={-1} ref={main}>
      <div class="page-header">
        <h1>Sessions</h1>
        <a href={links.costs}>Costs</a>
      </div>
      <SessionList
        scroller={main}
        filter={(words, status) => {
          // At once: the address changes later, and what is typed meanwhile would take the place of the other.
          filterList(words, status);
          filterBy('sessions', { search: words, status: status === 'all' ? '' : status });
        }}
      />
    </main>
  );
}

/** The same list beside a session, where there is room for both. */
export function SessionsAside({ shown }: { shown: string }) {
  const aside = useRef<HTMLElement>(null);
  return (
    <aside class="sessions sessions-aside" aria-label="Sessions" ref={aside}>
      <SessionList scroller={aside} shown={shown} filter={filterList} />
    </aside>
  );
}

function filterList(words: string, status: StatusFilter): void {
  search.value = words;
  statusFilter.value = status;
}

interface ListProps {
  scroller: RefObject<HTMLElement | null>;
  filter: (words: string, status: StatusFilter) => void;
  shown?: string;
}

function SessionList({ scroller, filter, shown }: ListProps) {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFirst = true;
    const loadSoon = (_search: string, _filter: StatusFilter) => {
      clearTimeout(timer);
      timer = setTimeout(() => void loadSessions(), isFirst ? 0 : TYPING_PAUSE_MS);
      isFirst = false;
    };
    const stop = effect(() => loadSoon(search.value, statusFilter.value));
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
  const state = listState.value;
  const rows = sessions.value;
  const isFiltered = search.value.trim() !== '' || statusFilter.value !== 'all';
  return (
    <>
      <search class="filters">
        <label class="field search">
          <span class="visually-hidden">Search sessions</span>
          <input
            type="search"
            placeholder="Title, directory, owner or id"
            value={search.value}
            data-slash={shown === undefined || undefined}
            onInput={({ currentTarget }) => filter(currentTarget.value, statusFilter.value)}
          />
        </label>
        <div class="chips" role="group" aria-label="Status">
          {(Object.keys(STATUS_FILTERS) as StatusFilter[]).map((name) => (
            <button
              type="button"
              class="chip"
              aria-pressed={statusFilter.value === name}
              onClick={() => filter(search.value, name)}
            >
              {STATUS_FILTERS[name].label}
            </button>
          ))}
        </div>
      </search>
      {state.state === 'failed' ? (
        <Failed what="The sessions could not be loaded" why={state.why} onRetry={() => void loadSessions()} />
      ) : rows.length > 0 ? (
        <VirtualList
          items={rows}
          keyOf={({ sessionId }) => sessionId}
          render={(row) => <SessionRow session={row} isShown={row.sessionId === shown} />}
          estimate={76}
          scroller={scroller}
          label="Sessions"
          isStop={() => true}
          onNearEnd={() => {
            if (hasMore.value) loadMore();
          }}
        />
      ) : state.state === 'loading' ? (
        <Loading what="Loading sessions…" />
      ) : isFiltered ? (
        <Empty title="No session matches">
          <p>Search looks at title, directory, owner and id.</p>
        </Empty>
      ) : (
        <Empty title="No sessions yet">
          <p>
            {me.value?.may.start === true
              ? 'Start one here, or from an agent or editor attached to this hub.'
              : 'They appear here when someone starts one.'}
          </p>
        </Empty>
      )}
    </>
  );
}

function isFilter(name: string | undefined): name is StatusFilter {
  return name !== undefined && Object.hasOwn(STATUS_FILTERS, name);
}

function SessionRow({ session, isShown }: { session: ApiSession; isShown: boolean }) {
  const { sessionId, title, state, owner, lastActiveAt } = session;
  return (
    <a class="session-row" href={links.session(sessionId)} aria-current={isShown ? 'true' : undefined}>
      <span class="row-title">
        {isUnread(session) && <span class="unread" role="img" aria-label="Not seen yet" title="Not seen yet" />}
        <Visible text={title ?? `Session ${shortId(sessionId)}`} />
      </span>
      <Status state={state} />
      <span class="row-activity quiet">
        <Visible text={activityWords(session)} />
      </span>
      <span class="row-place quiet">
        <Project of={session} /> · <Visible text={owner.name} />
      </span>
      <span class="row-numbers quiet">
        <span title={costTitle(session)}>{costWords(session)}</span> · <Time at={lastActiveAt} />
      </span>
    </a>
  );
}
