import { useSignal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import { STATES_AT_WORK } from '../../../src/schema/enums.ts';
import { api, wordsOf } from '../api/client.ts';
import { seconds } from '../model/clock.ts';
import { view } from '../model/hub.ts';
import { links, SESSION_TABS, type SessionTab } from '../model/router.ts';
import { markSeen } from '../model/seen.ts';
import type { SessionView } from '../model/session-view.ts';
import { Composer } from '../parts/composer.tsx';
import { Dialog, DialogButtons } from '../parts/dialog.tsx';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { CancelIcon, ChevronIcon, PauseIcon } from '../parts/icons.tsx';
import { Project, Visible } from '../parts/plain-text.tsx';
import { SessionDetails } from '../parts/session-details.tsx';
import { Status } from '../parts/status.tsx';
import { TimelineView } from '../parts/timeline-view.tsx';
import type { ScrollPlace } from '../parts/virtual-list.tsx';
import { WorkView } from '../parts/work-view.tsx';
import { activityWords, costTitle, costWords, duration, plural, shortId } from '../text/words.ts';

const TAB_NAMES: Record<SessionTab, string> = { timeline: 'Timeline', work: 'Work', details: 'Details' };
const AT_WORK: readonly ApiSessionDetail['state'][] = STATES_AT_WORK;

export function SessionPage({ tab }: { tab: SessionTab }) {
  const shown = view.value;
  const state = shown?.state.value;
  const detail = shown?.detail.value;
  const isLoaded = shown && state?.state === 'shown' && detail;
  // One element, which keeps the focus while its content is loaded.
  return (
    <main class={isLoaded ? 'session' : 'page'} id="content" tabIndex={-1}>
      {isLoaded ? (
        <Loaded shown={shown} detail={detail} tab={tab} />
      ) : state?.state === 'missing' ? (
        <Empty title="There is no such session">
          <p>
            It may have been removed after being idle, or belong to someone else.{' '}
            <a href={links.sessions}>Back to the list</a>
          </p>
        </Empty>
      ) : state?.state === 'failed' ? (
        <Failed what="The session could not be loaded" why={state.why} onRetry={() => void shown?.load()} />
      ) : (
        <Loading what="Loading the session…" />
      )}
    </main>
  );
}

function Loaded({ shown, detail, tab }: { shown: SessionView; detail: ApiSessionDetail; tab: SessionTab }) {
  // With what is on the screen: whoever leaves at once has seen it too.
  useLayoutEffect(() => {
    if (!document.hidden) markSeen(detail);
  }, [detail.lastActiveAt, detail.state]);
  const header = useSignal<Header>('open');
  const isFolded = header.value === 'folded' && tab === 'timeline';
  return (
    <>
      <header class={isFolded ? 'session-header folded' : 'session-header'}>
        <div class="session-title">
          <h1 title={detail.title}>
            <Visible text={detail.title ?? `Session ${shortId(detail.sessionId)}`} />
          </h1>
          <Status state={detail.state} />
          {detail.archivedAt !== undefined && <span class="tag">Archived</span>}
          {isFolded && (
            <button type="button" class="link unfold-header" onClick={() => (header.value = 'held open')}>
              <ChevronIcon />
              <span class="visually-hidden">Show the controls</span>
            </button>
          )}
        </div>
        <p class="quiet session-facts">
          <Project of={detail} />
          <span>
            <Visible text={detail.owner.name} />
          </span>
          <span title={costTitle(detail)}>{costWords(detail)}</span>
          {detail.totalTurns > 0 && <span>{plural(detail.totalTurns, 'step')}</span>}
          {detail.model !== undefined && <span>{detail.model}</span>}
        </p>
        <div class="session-bar">
          <nav class="tabs" aria-label="Parts of the session">
            {SESSION_TABS.map((name) => (
              <a href={links.session(detail.sessionId, name)} aria-current={name === tab ? 'page' : undefined}>
                {TAB_NAMES[name]}
              </a>
            ))}
          </nav>
          <Stops detail={detail} />
        </div>
        <p class="activity quiet" title={activityOf(detail)}>
          <Visible text={activityOf(detail)} />
          <Elapsed shown={shown} detail={detail} />
        </p>
      </header>
      {tab === 'timeline' && (
        <TimelineView
          shown={shown}
          detail={detail}
          onScroll={(place) => (header.value = headerAfter(header.value, place))}
        />
      )}
      {tab === 'work' && <WorkView shown={shown} detail={detail} />}
      {tab === 'details' && <SessionDetails detail={detail} />}
      {tab === 'timeline' && <Composer shown={shown} detail={detail} />}
    </>
  );
}

/** On a phone, whoever reads what was before needs the room: only the title stays. */
type Header = 'open' | 'folded' | 'held open';

/** Much more than a header is high: what folds must not bring the end or the start onto the screen, and unfold again. */
const FOLDS_FROM_PX = 320;
const UNFOLDS_AT_PX = 40;

function headerAfter(header: Header, { atEnd, top }: ScrollPlace): Header {
  if (atEnd || top <= UNFOLDS_AT_PX) return 'open';
  return header === 'open' && top >= FOLDS_FROM_PX ? 'folded' : header;
}

const QUIET_MS = 30_000;

/** How long the turn has taken so far, and whether anything is still happening in it. */
function Elapsed({ shown, detail }: { shown: SessionView; detail: ApiSessionDetail }) {
  const since = shown.workingSince.value;
  if (detail.status !== 'running' || since === undefined) return null;
  const quietMs = seconds.value - shown.heardAt.value;
  return (
    <span class="elapsed">
      {' '}
      · {duration(Math.max(1000, 1000 * Math.round((seconds.value - since) / 1000)))}
      {quietMs >= QUIET_MS && `, quiet for ${duration(1000 * Math.floor(quietMs / 1000))}`}
    </span>
  );
}

function activityOf(detail: ApiSessionDetail): string {
  const { state, needs, cancelledReason } = detail;
  if (state === 'cancelled') return cancelledReason ?? 'Cancelled permanently.';
  if (needs.length > 0 && !AT_WORK.includes(state)) return `Before it can run again, it needs: ${needs.join(', ')}`;
  return activityWords(detail) || ' ';
}

function Stops({ detail }: { detail: ApiSessionDetail }) {
  const asking = useSignal(false);
  const busy = useSignal(false);
  const problem = useSignal('');
  const run = (action: () => Promise<unknown>) => {
    busy.value = true;
    problem.value = '';
    action()
      .catch((error: unknown) => (problem.value = wordsOf(error)))
      .finally(() => (busy.value = false));
  };
  const { may, sessionId, state } = detail;
  const works = AT_WORK.includes(state);
  return (
    <>
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <div class="buttons stops">
        {may.includes('interrupt') && (
          <button
            type="button"
            class="button small"
            disabled={!works || state === 'interrupting' || busy.value}
            title="Stops what it is doing; the session can continue afterwards"
            onClick={() => run(() => api.interrupt(sessionId))}
          >
            <PauseIcon />
            <span>Interrupt</span>
          </button>
        )}
        {may.includes('cancel') && (
          <button
            type="button"
            class="button small danger"
            disabled={state === 'cancelled' || busy.value}
            title="Ends the session permanently"
            onClick={() => (asking.value = true)}
          >
            <CancelIcon />
            <span>Cancel session</span>
          </button>
        )}
        {asking.value && (
          <Dialog title="Cancel this session permanently?" onClose={() => (asking.value = false)}>
            <p>
              Claude Code and everything it started is stopped, open requests are denied, and the session takes no more
              messages. To stop only the current turn, interrupt it instead.
            </p>
            <DialogButtons leave="Keep it" isQuestion>
              <button type="submit" class="button danger" onClick={() => run(() => api.cancel(sessionId))}>
                Yes, cancel it
              </button>
            </DialogButtons>
          </Dialog>
        )}
      </div>
    </>
  );
}
