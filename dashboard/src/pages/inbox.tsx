import { useEffect, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import type { ApiRequest } from '../../../src/schema/api.ts';
import { api, wordsOf } from '../api/client.ts';
import { answerState, sendAnswer } from '../model/answers.ts';
import {
  clearSettled,
  groups,
  inbox,
  inboxState,
  loadInbox,
  openCount,
  request as known,
  settledCount,
  takeRequests,
  type Group,
} from '../model/inbox.ts';
import { readingOf } from '../model/reading.ts';
import { links } from '../model/router.ts';
import { moveFocus } from '../model/stops.ts';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { focusMain, isPointing } from '../parts/focus.ts';
import { Visible } from '../parts/plain-text.tsx';
import { RequestCard } from '../parts/request-card.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { oneLine, shortId } from '../text/words.ts';

export function InboxPage() {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    // What was answered elsewhere is not in the way of what waits.
    clearSettled();
    return clearSettled;
  }, []);
  const requests = inbox.value;
  const rows = groups.value.flatMap((group): (ApiRequest | Group)[] =>
    group.requests.length > 1 ? [...group.requests, group] : [...group.requests],
  );
  const state = inboxState.value;
  const done = settledCount.value;
  return (
    <main class="page inbox" id="content" tabIndex={-1} ref={main}>
      <div class="page-header">
        <h1>Inbox</h1>
        <p class="quiet">{state.state === 'loaded' ? `${openCount.value} waiting` : ' '}</p>
        {/* It keeps its place while there is nothing to clear, so that nothing moves when there is. */}
        <button type="button" class={`button small ${done === 0 ? 'reserved' : ''}`} onClick={clearSettled}>
          Clear {done} answered
        </button>
      </div>
      {state.state === 'failed' ? (
        <Failed what="The inbox could not be loaded" why={state.why} onRetry={() => void loadInbox()} />
      ) : requests.length > 0 ? (
        <VirtualList
          items={rows}
          keyOf={(row) => ('key' in row ? row.key : row.requestId)}
          render={(row) => ('key' in row ? <GroupEnd group={row} /> : <RequestCard request={row} />)}
          estimate={320}
          scroller={main}
          label="Requests, oldest first"
          isStop={(row) =>
            !('key' in row) && row.status === 'open' && answerState(row.requestId).peek().step === 'none'
          }
          class="cards"
        />
      ) : state.state === 'loading' ? (
        <Loading what="Loading the inbox…" />
      ) : (
        <Empty title="Nothing is waiting for you">
          <p>
            When a session needs a permission, a plan review or an answer, it appears here.{' '}
            <a href={links.sessions}>See what is running</a>
          </p>
        </Empty>
      )}
    </main>
  );
}

/** Answers everything that one session asks at once. Below its requests: above them it would move them. */
function GroupEnd({ group: { requests } }: { group: Group }) {
  const open = requests.filter(
    (one) =>
      one.status === 'open' &&
      one.mayAnswer &&
      one.type === 'permission' &&
      answerState(one.requestId).value.step === 'none',
  );
  const unseen = open.filter(({ requestId }) => readingOf(requestId).left.value !== 'nothing').length;
  const [first] = requests;
  if (open.length < 2) return null;
  return (
    <div class="group-end">
      <button
        type="button"
        class="button"
        disabled={unseen > 0}
        onClick={() => {
          for (const one of open) sendAnswer(one, { decision: 'allow' });
          if (isPointing() || !moveFocus(1)) focusMain();
        }}
      >
        Allow all {open.length}
      </button>
      <span class="quiet">
        of <Visible text={oneLine(first?.session.title ?? `session ${shortId(first?.sessionId ?? '')}`, 60)} />
        {unseen > 0 && `; ${unseen} of them ${unseen === 1 ? 'has' : 'have'} not been on the screen yet`}
      </span>
    </div>
  );
}

/** One request, open or settled: where a notification leads. */
export function RequestPage({ id }: { id: string }) {
  const problem = useSignal<string | undefined>(undefined);
  const load = () => {
    problem.value = undefined;
    api.request(id).then(
      (row) => takeRequests([row]),
      (error: unknown) => (problem.value = wordsOf(error)),
    );
  };
  useEffect(load, [id]);
  const shown = known(id);
  const waiting = openCount.value;
  return (
    <main class="page inbox" id="content" tabIndex={-1}>
      <div class="page-header">
        <h1>Request</h1>
        <p class="quiet">
          <a href={links.inbox}>{waiting > 0 ? `All ${waiting} waiting` : 'Inbox'}</a>
        </p>
      </div>
      {shown ? (
        <div class="cards">
          <RequestCard request={shown} />
        </div>
      ) : problem.value === undefined ? (
        <Loading what="Loading the request…" />
      ) : (
        <Failed what="The request could not be loaded" why={problem.value} onRetry={load} />
      )}
    </main>
  );
}
