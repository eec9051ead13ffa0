import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import { openRequestsOf } from '../model/inbox.ts';
import type { SessionView } from '../model/session-view.ts';
import type { Row } from '../timeline/timeline.ts';
import { Empty } from './empty.tsx';
import { RequestCard } from './request-card.tsx';
import { TimelineRow } from './timeline-row.tsx';
import { VirtualList } from './virtual-list.tsx';

export function TimelineView({ shown, detail }: { shown: SessionView; detail: ApiSessionDetail }) {
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useSignal(true);
  const revision = shown.revision.value;
  const rows = useMemo(() => shown.timeline.rows(shown.isFolded), [shown, revision]);
  const open = openRequestsOf(detail.sessionId);
  const listed: (Row | { readonly request: (typeof open)[number] })[] = [
    ...rows,
    ...open.map((request) => ({ request })),
  ];
  return (
    <div class="timeline" ref={scroller}>
      {shown.hasEarlier && <p class="quiet earlier">Earlier events load when you scroll up.</p>}
      {!shown.hasEarlier && shown.droppedThrough.value > 0 && (
        <p class="quiet earlier">Earlier events are no longer kept.</p>
      )}
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
