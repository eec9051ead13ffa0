import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import { openRequestsOf } from '../model/inbox.ts';
import { links } from '../model/router.ts';
import type { SessionView } from '../model/session-view.ts';
import { shortId } from '../text/words.ts';
import type { Row } from '../timeline/timeline.ts';
import { Empty } from './empty.tsx';
import { RequestCard } from './request-card.tsx';
import { TimelineRow } from './timeline-row.tsx';
import { VirtualList } from './virtual-list.tsx';

export function TimelineView({ shown, detail }: { shown: SessionView; detail: ApiSessionDetail }) {
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useSignal(true);
  const revision = shown.revision.value;
  const inherited = shown.inherited.value;
  const rows = useMemo(
    () => [
      // Events of another session have ids of their own.
      ...(inherited.state === 'shown' ? inherited.timeline.rows(shown.isFolded) : []).map(({ item, depth }) => ({
        item: { ...item, key: `o${item.key}` },
        depth: depth + 1,
      })),
      ...shown.timeline.rows(shown.isFolded),
    ],
    [shown, revision, inherited],
  );
  const open = openRequestsOf(detail.sessionId);
  const writing = shown.writing.value;
  const listed: (Row | { readonly request: (typeof open)[number] })[] = [
    ...rows,
    ...(writing === '' || shown.timeline.isWriting
      ? []
      : [{ item: { kind: 'text' as const, key: 'writing', at: 0, text: writing, unfinished: true }, depth: 0 }]),
    ...open.map((request) => ({ request })),
  ];
  return (
    <div class="timeline" ref={scroller}>
      {shown.hasEarlier && <p class="quiet earlier">Earlier events load when you scroll up.</p>}
      {!shown.hasEarlier && shown.droppedThrough.value > 0 && (
        <p class="quiet earlier">Earlier events are no longer kept.</p>
      )}
      {detail.forkOf && <Origin shown={shown} sessionId={detail.forkOf.sessionId} />}
      {listed.length === 0 ? (
        <Empty title="Nothing has happened yet" />
      ) : (
        <VirtualList
          items={listed}
          keyOf={(row) => ('request' in row ? `r${row.request.requestId}` : row.item.key)}
          render={(row) =>
            'request' in row ? (
              <RequestCard request={row.request} inSession />
            ) : (
              <TimelineRow row={row} shown={shown} detail={detail} />
            )
          }
          estimate={44}
          scroller={scroller}
          label="Timeline"
          followEnd
          onNearStart={() => shown.readEarlier()}
          onAtEnd={(is) => (atEnd.value = is)}
        />
      )}
      {!atEnd.value && (
        <button
          type="button"
          class="button small to-end"
          onClick={() => scroller.current?.scrollTo({ top: scroller.current.scrollHeight })}
        >
          Latest ↓
        </button>
      )}
    </div>
  );
}

/** Where a copy comes from, and what it has from there. */
function Origin({ shown, sessionId }: { shown: SessionView; sessionId: string }) {
  const inherited = shown.inherited.value;
  return (
    <p class="quiet origin">
      Forked from <a href={links.session(sessionId)}>session {shortId(sessionId)}</a>, with its conversation up to then.{' '}
      {inherited.state === 'shown' ? (
        'What it inherited is indented.'
      ) : (
        <button
          type="button"
          class="link"
          disabled={inherited.state === 'loading'}
          onClick={() => void shown.readInherited()}
        >
          Show what it inherited
        </button>
      )}{' '}
      {inherited.state === 'failed' && <span class="problem">{inherited.why}</span>}
    </p>
  );
}
