import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import { openRequestsOf } from '../model/inbox.ts';
import { links } from '../model/router.ts';
import type { SessionView } from '../model/session-view.ts';
import { oneLine, plural, shortId } from '../text/words.ts';
import { textIn, type Row } from '../timeline/timeline.ts';
import { Dialog, DialogButtons } from './dialog.tsx';
import { Empty } from './empty.tsx';
import { Visible } from './plain-text.tsx';
import { RequestCard } from './request-card.tsx';
import { isTyping } from './shortcuts.tsx';
import { Time } from './time.tsx';
import { TimelineRow } from './timeline-row.tsx';
import { VirtualList, type ListControl, type ScrollPlace } from './virtual-list.tsx';

interface Props {
  shown: SessionView;
  detail: ApiSessionDetail;
  onScroll: (place: ScrollPlace) => void;
}

export function TimelineView({ shown, detail, onScroll }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<ListControl>(null);
  const atEnd = useSignal(true);
  const marked = useSignal<string | undefined>(undefined);
  const revision = shown.revision.value;
  const inherited = shown.inherited.value;
  const rows = useMemo(
    () => [...inheritedRows(shown), ...shown.timeline.rows(shown.isFolded)],
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
  const reveal = (key: string) => {
    marked.value = key;
    list.current?.show(key);
  };
  const toStart = async () => {
    await shown.readAll();
    const [oldest] = inheritedRows(shown);
    const [first] = oldest ? [oldest] : shown.timeline.rows(shown.isFolded);
    if (first) list.current?.show(first.item.key);
  };
  const toEnd = () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
      if (isTyping(event) || document.querySelector('dialog[open]')) return;
      const page = scroller.current?.clientHeight ?? 0;
      if (event.key === 'Home') void toStart();
      else if (event.key === 'End') toEnd();
      else if (event.key === 'PageUp') scroller.current?.scrollBy({ top: -0.9 * page });
      else if (event.key === 'PageDown') scroller.current?.scrollBy({ top: 0.9 * page });
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [shown]);
  return (
    <div class="timeline-pane">
      <Tools shown={shown} rows={rows} reveal={reveal} toStart={() => void toStart()} />
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
            control={list}
            marked={marked.value}
            isStop={(row) => 'request' in row}
            onNearStart={() => shown.readEarlier()}
            onScroll={(place) => {
              atEnd.value = place.atEnd;
              onScroll(place);
            }}
          />
        )}
        {!atEnd.value && (
          <button type="button" class="button small to-end" onClick={toEnd}>
            Latest ↓
          </button>
        )}
      </div>
    </div>
  );
}

/** Events of another session have ids of their own. */
function inheritedRows({ inherited: { value: inherited }, isFolded }: SessionView): Row[] {
  return (inherited.state === 'shown' ? inherited.parts : []).flatMap(({ sessionId, timeline }) =>
    timeline.rows(isFolded).map(({ item, depth }) => ({
      item: { ...item, key: `${sessionId} ${item.key}` },
      depth: depth + 1,
      of: sessionId,
    })),
  );
}

interface ToolsProps {
  shown: SessionView;
  rows: readonly Row[];
  reveal: (key: string) => void;
  toStart: () => void;
}

/** Ways around in a long session. */
function Tools({ shown, rows, reveal, toStart }: ToolsProps) {
  const words = useSignal('');
  const at = useSignal(-1);
  const outline = useSignal(false);
  const found = useMemo(() => {
    const wanted = words.value.trim().toLowerCase();
    return wanted === '' ? [] : rows.filter(({ item }) => textIn(item).toLowerCase().includes(wanted));
  }, [rows, words.value]);
  const go = (step: 1 | -1) => {
    if (found.length === 0) return;
    // The newest first: that is where the page opens.
    at.value = at.value < 0 ? found.length - 1 : (at.value + step + found.length) % found.length;
    const row = found[at.value];
    if (row) reveal(row.item.key);
  };
  return (
    <div class="timeline-tools">
      <button type="button" class="button small way" onClick={toStart}>
        Start ↑
      </button>
      <button
        type="button"
        class="button small way"
        onClick={() => {
          outline.value = true;
          void shown.readAll();
        }}
      >
        Outline
      </button>
      <label class="find">
        <span class="visually-hidden">Search in this session</span>
        <input
          type="search"
          placeholder="Search"
          value={words.value}
          onInput={({ currentTarget }) => {
            words.value = currentTarget.value;
            at.value = -1;
            if (currentTarget.value.trim() !== '') void shown.readAll();
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter') go(event.shiftKey ? 1 : -1);
          }}
        />
      </label>
      <span class="quiet found" aria-live="polite">
        {words.value.trim() === ''
          ? ''
          : found.length === 0
            ? 'Nothing found'
            : `${at.value < 0 ? '' : `${found.length - at.value} of `}${plural(found.length, 'match', 'matches')}`}
      </span>
      {found.length > 0 && (
        <>
          <button type="button" class="button small" aria-label="Previous match" onClick={() => go(-1)}>
            ↑
          </button>
          <button type="button" class="button small" aria-label="Next match" onClick={() => go(1)}>
            ↓
          </button>
        </>
      )}
      {outline.value && (
        <Dialog title="Outline" onClose={() => (outline.value = false)}>
          <ol class="outline">
            {rows.flatMap(({ item, depth }) =>
              item.kind === 'prompt' && depth === 0
                ? [
                    <li key={item.key}>
                      <button
                        type="button"
                        class="link"
                        onClick={() => {
                          outline.value = false;
                          reveal(item.key);
                        }}
                      >
                        <Visible text={oneLine(item.text, 120)} />
                      </button>{' '}
                      <span class="quiet">
                        <Time at={item.at} />
                      </span>
                    </li>,
                  ]
                : [],
            )}
          </ol>
          <DialogButtons />
        </Dialog>
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
        `What it inherited is indented.${inherited.isWhole ? '' : ' The beginning of it is no longer there.'}`
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
