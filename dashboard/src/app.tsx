import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';
import { me, signIn } from './api/sign-in.ts';
import { stream, view } from './model/hub.ts';
import { now } from './model/clock.ts';
import { openCount } from './model/inbox.ts';
import { go, links, page, type Page } from './model/router.ts';
import { keysShown } from './model/settings.ts';
import { pushShown, showCount } from './model/push.ts';
import { exchange, signOut } from './model/sign-in-flow.ts';
import { AuditPage } from './pages/audit.tsx';
import { CostsPage } from './pages/costs.tsx';
import { InboxPage, RequestPage } from './pages/inbox.tsx';
import { NewSessionPage } from './pages/new-session.tsx';
import { RulesPage } from './pages/rules.tsx';
import { SessionPage } from './pages/session.tsx';
import { SessionsAside, SessionsPage } from './pages/sessions.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { TokensPage } from './pages/tokens.tsx';
import { Empty } from './parts/empty.tsx';
import { AuditIcon, BellIcon, InboxIcon, PlusIcon, RulesIcon, SessionsIcon, TokensIcon } from './parts/icons.tsx';
import { Notifications } from './parts/notifications.tsx';
import { Shortcuts } from './parts/shortcuts.tsx';
import { clockTime, exactTime, oneLine, shortId } from './text/words.ts';

/** There is room for a list beside a session. */
const wide = matchMedia('(min-width: 80rem)');
const isWide = signal(wide.matches);
wide.addEventListener('change', () => (isWide.value = wide.matches));

export function App() {
  const signed = signIn.value.state === 'in' && exchange.value.state === 'idle';
  const open = signed ? openCount.value : 0;
  const title = `${open > 0 ? `(${open}) ` : ''}${signed ? titleOf(page.value) : 'Sign in'} · Claude Code hub`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => showCount(open), [open]);
  const place = `${page.value.name} ${page.value.name === 'session' ? page.value.id : ''}`;
  const isFirst = useRef(true);
  useEffect(() => {
    // Keyboard and screen-reader users who follow a link continue in the page it leads to.
    if (!isFirst.current) document.querySelector('main')?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [place]);
  if (!signed) return <SignInPage />;
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skipToContent}>
        Skip to content
      </a>
      <header class="bar">
        <span class="brand">Claude Code hub</span>
        <ConnectionStatus />
        <button type="button" class="link bell" title="Notifications" onClick={() => (pushShown.value = true)}>
          <BellIcon />
          <span class="visually-hidden">Notifications</span>
        </button>
        <button type="button" class="link sign-out" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <Navigation />
      <CurrentPage page={page.value} />
      <Shortcuts />
      <Notifications />
    </div>
  );
}

function skipToContent(event: Event): void {
  event.preventDefault();
  document.querySelector('main')?.focus();
}

function titleOf({ name }: Page): string {
  const shown = view.value?.detail.value;
  if (name === 'session' && shown) return oneLine(shown.title ?? `Session ${shortId(shown.sessionId)}`, 60);
  const titles = {
    inbox: 'Inbox',
    sessions: 'Sessions',
    session: 'Session',
    audit: 'Audit',
    rules: 'Rules',
    tokens: 'Tokens',
    costs: 'Costs',
    new: 'New session',
    unknown: 'Not found',
  };
  return titles[name];
}

function NotYours({ what }: { what: string }) {
  return (
    <main class="page" id="content" tabIndex={-1}>
      <Empty title={`Your role may not ${what}`} />
    </main>
  );
}

function CurrentPage({ page: shown }: { page: Page }) {
  const may = me.value?.may;
  switch (shown.name) {
    case 'inbox':
      return shown.request === undefined ? <InboxPage /> : <RequestPage key={shown.request} id={shown.request} />;
    case 'sessions':
      return <SessionsPage query={shown.query} />;
    case 'session':
      return (
        <>
          {isWide.value && <SessionsAside shown={shown.id} />}
          <SessionPage key={shown.id} tab={shown.tab} />
        </>
      );
    case 'audit':
      return may?.readAudit === false ? <NotYours what="read the audit trail" /> : <AuditPage query={shown.query} />;
    case 'rules':
      return may?.readAll === false ? <NotYours what="read the rules" /> : <RulesPage />;
    case 'tokens':
      return may?.manageTokens === false ? <NotYours what="manage tokens" /> : <TokensPage />;
    case 'costs':
      return <CostsPage />;
    case 'new':
      return may?.start === false ? <NotYours what="start sessions" /> : <NewSessionPage />;
    case 'unknown':
      return (
        <main class="page" id="content" tabIndex={-1}>
          <Empty title="There is no such page">
            <p>
              <a href={links.inbox}>Go to the inbox</a>
            </p>
          </Empty>
        </main>
      );
  }
}

function Navigation() {
  const may = me.value?.may;
  const { name } = page.value;
  const open = openCount.value;
  return (
    <nav class="navigation" aria-label="Pages">
      <a
        href={links.inbox}
        aria-current={name === 'inbox' ? 'page' : undefined}
        aria-description={open > 0 ? `${open} waiting` : undefined}
      >
        <InboxIcon />
        <span>Inbox</span>
        {open > 0 && (
          <span class="badge" aria-hidden="true" title={`${open} waiting for an answer`}>
            {open > 99 ? '99+' : open}
          </span>
        )}
      </a>
      <a
        href={links.sessions}
        aria-current={name === 'sessions' || name === 'session' || name === 'costs' ? 'page' : undefined}
      >
        <SessionsIcon />
        <span>Sessions</span>
      </a>
      {may?.readAll === true && (
        <a href={links.rules} aria-current={name === 'rules' ? 'page' : undefined}>
          <RulesIcon />
          <span>Rules</span>
        </a>
      )}
      {may?.readAudit === true && (
        <a href={links.audit} aria-current={name === 'audit' ? 'page' : undefined}>
          <AuditIcon />
          <span>Audit</span>
        </a>
      )}
      {may?.manageTokens === true && (
        <a href={links.tokens} aria-current={name === 'tokens' ? 'page' : undefined}>
          <TokensIcon />
          <span>Tokens</span>
        </a>
      )}
      {may?.start === true && (
        <button
          type="button"
          class="new-session"
          aria-current={name === 'new' ? 'page' : undefined}
          onClick={() => go(links.new)}
        >
          <PlusIcon />
          <span>New session</span>
        </button>
      )}
      <Who />
    </nav>
  );
}

function Who() {
  const signed = signIn.value;
  if (signed.state === 'out') return null;
  return (
    <div class="who">
      <p>
        {signed.principal.name} <span class="quiet">· {signed.principal.role}</span>
      </p>
      <button type="button" class="link" onClick={() => (keysShown.value = true)}>
        Keyboard
      </button>
    </div>
  );
}

function ConnectionStatus() {
  const connection = stream.connection.value;
  const words =
    connection.state === 'connected'
      ? 'Connected'
      : connection.state === 'connecting'
        ? 'Connecting'
        : connection.state === 'catching up'
          ? 'Catching up'
          : `Offline since ${clockTime(connection.since, now.value)}`;
  const title =
    connection.state === 'offline' ? `${exactTime(connection.since)}. The page keeps trying to reconnect.` : undefined;
  return (
    <div class={`connection connection-${connection.state.replace(' ', '-')}`} role="status" title={title}>
      <svg viewBox="0 0 16 16" width="10" height="10" aria-hidden="true" focusable="false">
        {connection.state === 'connected' ? (
          <circle cx="8" cy="8" r="6" />
        ) : connection.state === 'offline' ? (
          <path d="m2.5 2.5 11 11m0-11-11 11" />
        ) : (
          <path d="M8 2a6 6 0 1 1-6 6" />
        )}
      </svg>
      {words}
    </div>
  );
}
