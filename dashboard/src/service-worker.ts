/**
 * Shows what the hub pushes, and leads to it. It answers no requests and keeps nothing: no cache, no database, no key.
 * It is built into a file of its own, and imports nothing but types.
 */

import type { PushPayload } from '../../src/schema/api-admin.ts';

/** The part of a service worker's scope that is used here; the page's types have none of it. */
interface WorkerScope {
  readonly registration: ServiceWorkerRegistration;
  readonly navigator: Navigator;
  readonly clients: {
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<WindowClient[]>;
    openWindow(url: string): Promise<unknown>;
    claim(): Promise<void>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: 'install' | 'activate', listener: (event: Extendable) => void): void;
  addEventListener(
    type: 'push',
    listener: (event: Extendable & { readonly data: { json(): unknown } | null }) => void,
  ): void;
  addEventListener(
    type: 'notificationclick',
    listener: (event: Extendable & { readonly notification: Notification }) => void,
  ): void;
}

interface WindowClient {
  focus(): Promise<unknown>;
  postMessage(message: unknown): void;
}

interface Extendable {
  waitUntil(done: Promise<unknown>): void;
}

const worker = self as unknown as WorkerScope;

worker.addEventListener('install', (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener('push', (event) => event.waitUntil(show(event.data?.json() as PushPayload | undefined)));
worker.addEventListener('notificationclick', (event) => {
  const { notification } = event;
  notification.close();
  event.waitUntil(open((notification.data as { requestId?: string } | null)?.requestId));
});

async function show(payload: PushPayload | undefined): Promise<void> {
  const { registration } = worker;
  const common = { icon: './icon-192.png', badge: './badge.png' };
  if (payload === undefined || payload.state === 'test') {
    const body = 'This browser is notified when something waits for you.';
    return registration.showNotification('Notifications work', { ...common, body, tag: 'test' });
  }
  const { state, requestId } = payload;
  // One for each request: several may wait at once.
  const tag = `request ${requestId}`;
  const data = { requestId, state };
  if (state === 'open') {
    const options = { ...common, body: waited(payload.ageMs ?? 0), tag, data, renotify: true };
    await registration.showNotification(question(payload), options);
  } else {
    const options = { ...common, body: `${subject(payload)} was answered.`, tag, data, silent: true };
    await registration.showNotification('Settled', options);
    // Whoever has the page open sees it there.
    const pages = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
    if (pages.length > 0) for (const one of await registration.getNotifications({ tag })) one.close();
  }
  const shown = await registration.getNotifications();
  const open = shown.filter(({ data: about }) => (about as { state?: string } | null)?.state === 'open').length;
  await worker.navigator.setAppBadge?.(open).catch(() => undefined);
}

function question({ kind, tool }: { kind?: string; tool?: string }): string {
  if (kind === 'plan_review') return 'Claude has a plan for you to review';
  if (kind === 'user_question') return 'Claude has a question for you';
  return `Claude asks to use ${tool ?? 'a tool'}`;
}

function subject({ kind, tool }: { kind?: string; tool?: string }): string {
  if (kind === 'plan_review') return 'The plan';
  return kind === 'user_question' ? 'The question' : `The request to use ${tool ?? 'a tool'}`;
}

function waited(ageMs: number): string {
  const minutes = Math.floor(ageMs / 60_000);
  if (minutes < 1) return 'Waiting for your answer.';
  const hours = Math.floor(minutes / 60);
  return `Waiting for ${hours < 1 ? `${minutes} min` : hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`}.`;
}

/** In a page that is already open, if there is one. */
async function open(requestId: string | undefined): Promise<void> {
  const [page] = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const link = requestId === undefined ? '#/' : `#/requests/${encodeURIComponent(requestId)}`;
  if (!page) {
    await worker.clients.openWindow(`./${link}`);
    return;
  }
  page.postMessage({ open: link });
  await page.focus().catch(() => undefined);
}
