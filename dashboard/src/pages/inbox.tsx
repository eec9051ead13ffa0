import { useEffect, useRef } from 'preact/hooks';
import { clearSettled, inbox, inboxState, loadInbox, openCount, settledCount } from '../model/inbox.ts';
import { links } from '../model/router.ts';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { RequestCard } from '../parts/request-card.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';

export function InboxPage() {
  const main = useRef<HTMLElement>(null);
  useEffect(() => clearSettled, []);
  const requests = inbox.value;
  const state = inboxState.value;
  const done = settledCount.value;
  return (
    <main class="page inbox" id="content" tabIndex={-1} ref={main}>
      <div class="page-header">
        <h1>Inbox</h1>
        <p class="quiet">{state.state === 'loaded' ? `${openCount.value} waiting` : ' '}</p>
        <button type="button" class="button small" hidden={done === 0} onClick={clearSettled}>
          Clear {done} answered
        </button>
      </div>
      {state.state === 'failed' ? (
        <Failed what="The inbox could not be loaded" why={state.why} onRetry={() => void loadInbox()} />
      ) : requests.length > 0 ? (
        <VirtualList
          items={requests}
          keyOf={({ requestId }) => requestId}
          render={(request) => <RequestCard request={request} />}
          estimate={320}
          scroller={main}
          label="Requests, oldest first"
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
