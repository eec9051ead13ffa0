import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiAuditEntry } from '../../../src/schema/api-admin.ts';
import { api, wordsOf } from '../api/client.ts';
import { go, links } from '../model/router.ts';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { Visible } from '../parts/plain-text.tsx';
import { Time } from '../parts/time.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { dollars, shortId } from '../text/words.ts';

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

export function AuditPage({ session }: { session: string | undefined }) {
  const main = useRef<HTMLElement>(null);
  const kind = useSignal<keyof typeof KINDS>('');
  const loaded = useSignal<Loaded>({ state: 'loading' });
  const reading = useRef(false);
  const read = async (before?: { entries: readonly ApiAuditEntry[]; next: string | undefined }) => {
    if (reading.current) return;
    reading.current = true;
    const wanted = kind.value;
    try {
      const { entries, next } = await api.audit({ session, kind: wanted, after: before?.next, limit: 200 });
      if (wanted === kind.value)
        loaded.value = { state: 'loaded', entries: [...(before?.entries ?? []), ...entries], next };
    } catch (error) {
      if (!before) loaded.value = { state: 'failed', why: wordsOf(error) };
    } finally {
      reading.current = false;
    }
    if (wanted !== kind.value) await read();
  };
  useEffect(() => void read(), [session]);
  const state = loaded.value;
  return (
    <main class="page audit" id="content" tabIndex={-1} ref={main}>
      <div class="page-header">
        <h1>Audit</h1>
        <p class="quiet">{session === undefined ? 'Newest first' : `Of session ${shortId(session)}`}</p>
        {session !== undefined && (
          <button type="button" class="button small" onClick={() => go(links.audit)}>
            Show all
          </button>
        )}
      </div>
      <div class="chips" role="group" aria-label="Kind">
        {(Object.keys(KINDS) as (keyof typeof KINDS)[]).map((name) => (
          <button
            type="button"
            class="chip"
            aria-pressed={kind.value === name}
            onClick={() => {
              kind.value = name;
              void read();
            }}
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

function Entry({ entry }: { entry: ApiAuditEntry }) {
  const { time, kind, session, principal, who, what, outcome, cost, details } = entry;
  const more = Object.entries(details ?? {});
  return (
    <div class="audit-row">
      <span class="quiet">
        <Time at={time} />
      </span>
      <span class="tag">{kind.replaceAll('_', ' ')}</span>
      <span class="audit-what">
        <Visible text={what} />
        {outcome !== undefined && (
          <>
            {' → '}
            <strong>
              <Visible text={outcome} />
            </strong>
          </>
        )}
      </span>
      <span class="quiet">
        {principal === undefined ? who : `${principal} (${who})`}
        {session !== undefined && (
          <>
            {' · '}
            <a href={links.session(session)} class="mono">
              {shortId(session)}
            </a>
          </>
        )}
        {cost !== undefined && ` · ${dollars(cost)}`}
      </span>
      {more.length > 0 && (
        <span class="audit-details quiet mono">
          <Visible
            text={more
              .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
              .join('  ')}
          />
        </span>
      )}
    </div>
  );
}
