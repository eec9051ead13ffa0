import { computed, effect, signal } from '@preact/signals';
import type { PushAnswer, PushSubscriptionView } from '../../../src/schema/api-admin.ts';
import { api, CallFailure, wordsOf } from '../api/client.ts';
import { signIn } from '../api/sign-in.ts';
import { inbox } from './inbox.ts';
import { go } from './router.ts';

/** Whether this browser is notified, or what keeps it from being. */
export type PushState =
  | { readonly state: 'loading' }
  | { readonly state: 'impossible'; readonly why: string }
  | { readonly state: 'off' }
  | { readonly state: 'on'; readonly id: string };

export const pushState = signal<PushState>({ state: 'loading' });
/** All browsers of this principal. */
export const browsers = signal<readonly PushSubscriptionView[]>([]);
export const pushProblem = signal<string | undefined>(undefined);
export const pushShown = signal(false);

let registration: Promise<ServiceWorkerRegistration | undefined> = Promise.resolve(undefined);

/** Once, when the page is opened. */
export function followPush(): void {
  if (isSecureContext && 'serviceWorker' in navigator) {
    registration = register().catch(() => undefined);
    navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<{ open?: unknown } | null>) => {
      if (typeof data?.open === 'string' && data.open.startsWith('#/')) go(data.open);
    });
  }
  effect(() => {
    if (signIn.value.state === 'in') void loadPush();
  });
  // A notification for something that was answered meanwhile is wrong where the page can see it.
  const settled = computed(() => inbox.value.filter(({ status }) => status === 'settled').map((one) => one.requestId));
  effect(() => void closeNotifications(settled.value));
}

/** Trusted Types: the only script URL that this page ever makes is that of its own worker. */
async function register(): Promise<ServiceWorkerRegistration> {
  const url = './service-worker.js';
  const { trustedTypes } = window as {
    trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(url: string): string } };
  };
  const policy = trustedTypes?.createPolicy('service-worker', { createScriptURL: (given: string) => given });
  return navigator.serviceWorker.register(policy?.createScriptURL(url) ?? url);
}

async function closeNotifications(requestIds: readonly string[]): Promise<void> {
  if (requestIds.length === 0) return;
  const tags = new Set(requestIds.map((id) => `request ${id}`));
  const shown = (await (await registration)?.getNotifications()) ?? [];
  for (const notification of shown) if (tags.has(notification.tag)) notification.close();
}

function impossible(): string | undefined {
  if (!isSecureContext)
    return 'Notifications need HTTPS, and this page was opened over plain HTTP. Give the hub a certificate (--tls-cert, --tls-key) or put it behind a proxy that has one (--behind-proxy).';
  const isApple = /iPhone|iPad|iPod/.test(navigator.userAgent);
  if (!('PushManager' in window) && isApple)
    return 'On an iPhone or iPad, notifications work once the page is installed: choose Share, then Add to Home Screen, and open it from there.';
  if (!('PushManager' in window) || !('Notification' in window)) return 'This browser has no push notifications.';
  if (Notification.permission === 'denied')
    return 'Notifications are blocked for this page. Allow them in the browser’s settings for this site, then reload the page.';
  return undefined;
}

export async function loadPush(): Promise<void> {
  try {
    await show(await api.push());
  } catch (error) {
    if (!(error instanceof CallFailure && error.status === 401)) pushProblem.value = wordsOf(error);
  }
}

async function show({ subscriptions }: PushAnswer): Promise<void> {
  browsers.value = subscriptions;
  const why = impossible();
  if (why !== undefined) {
    pushState.value = { state: 'impossible', why };
    return;
  }
  const kept = await (await registration)?.pushManager.getSubscription();
  const own = subscriptions.find(({ current }) => current);
  if (kept && !own) await remember(kept);
  else pushState.value = kept && own ? { state: 'on', id: own.id } : { state: 'off' };
}

/** The browser's subscription is for whoever is signed in. */
async function remember(subscription: PushSubscription): Promise<void> {
  const { endpoint, keys } = subscription.toJSON();
  const body = { endpoint: endpoint ?? '', keys: { p256dh: keys?.['p256dh'] ?? '', auth: keys?.['auth'] ?? '' } };
  const { subscription: made } = await api.subscribe({ ...body, name: browserName() });
  browsers.value = [...browsers.value.filter(({ id }) => id !== made.id), made];
  pushState.value = { state: 'on', id: made.id };
}

export async function turnOn(): Promise<void> {
  await attempt(async () => {
    if ((await Notification.requestPermission()) !== 'granted') return loadPush();
    const worker = await registration;
    if (!worker) throw new Error('The page could not set up notifications; reload it and try again.');
    await navigator.serviceWorker.ready;
    const { publicKey } = await api.push();
    // One that was made with the key of another hub is of no use.
    await (await worker.pushManager.getSubscription())?.unsubscribe();
    const key = Uint8Array.from(atob(publicKey.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));
    await remember(await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
  });
}

/** This browser, or another one of the same person. */
export async function turnOff(id: string): Promise<void> {
  await attempt(async () => {
    const isOwn = pushState.value.state === 'on' && pushState.value.id === id;
    if (isOwn) await (await (await registration)?.pushManager.getSubscription())?.unsubscribe();
    await api.unsubscribe(id);
    await loadPush();
  });
}

export async function sendTest(id: string): Promise<void> {
  await attempt(() => api.testPush(id));
}

/** Before this browser signs out: nobody is told what it no longer may see. */
export async function forgetPush(): Promise<void> {
  const kept = await (await registration)?.pushManager?.getSubscription().catch(() => null);
  await kept?.unsubscribe().catch(() => false);
  pushState.value = { state: 'loading' };
}

async function attempt(work: () => Promise<unknown>): Promise<void> {
  pushProblem.value = undefined;
  try {
    await work();
  } catch (error) {
    pushProblem.value = wordsOf(error);
    if (error instanceof CallFailure && error.status === 404) await loadPush();
  }
}

function browserName(): string {
  const found = ['Edg', 'Firefox', 'Chrome', 'Safari'].find((name) => navigator.userAgent.includes(name)) ?? 'Browser';
  const system = ['iPhone', 'iPad', 'Android', 'Windows', 'Mac', 'Linux'].find((name) =>
    navigator.userAgent.includes(name),
  );
  return `${found === 'Edg' ? 'Edge' : found}${system === undefined ? '' : ` on ${system}`}`;
}

/** The number that waits: on the tab's icon, and on the icon of the installed page. */
export function showCount(count: number): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (link) link.href = count === 0 ? './icon.svg' : badgedIcon(count);
  void navigator.setAppBadge?.(count).catch(() => undefined);
}

function badgedIcon(count: number): string {
  const text = count > 9 ? '9+' : String(count);
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#b4552d"/>' +
    '<path d="M6 10l5 5-5 5" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>' +
    '<circle cx="21" cy="20" r="11" fill="#fff"/>' +
    `<text x="21" y="25" font-family="sans-serif" font-size="15" font-weight="bold" text-anchor="middle" fill="#8a3b19">${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
