/** Notifications in a real browser: Debian's Chromium, since the one from npm denies the permission. */

import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type CDPSession, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { LOOPBACK_CERTIFICATE, openPushService, type PushArrival, type PushService } from '../harness/push-service.ts';
import { cardOf } from './journey-world.ts';
import { signInWith } from './page-steps.ts';
import { RealHub } from './real-hub.ts';

const CHROMIUM = '/usr/bin/chromium';
const isThere = existsSync(CHROMIUM);
if (!isThere) console.warn(`${CHROMIUM} is missing: notifications are not tested in a browser`);

describe.runIf(isThere)('notifications in a browser', () => {
  let hub: RealHub;
  let browser: Browser;
  let service: PushService;

  beforeAll(async () => {
    service = await openPushService();
    [hub, browser] = await Promise.all([
      RealHub.open({ args: ['--push-hosts', service.host], env: { NODE_EXTRA_CA_CERTS: LOOPBACK_CERTIFICATE } }),
      chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--headless=new', '--disable-gpu'] }),
    ]);
  }, 90_000);
  afterAll(async () => {
    await browser?.close();
    await hub?.close();
    await service?.close();
  }, 60_000);

  /** There is no push service to subscribe to: the page is given a subscription to the test's own. */
  async function open(name: string): Promise<{ page: Page; context: BrowserContext; device: Device }> {
    const context = await browser.newContext({ permissions: ['notifications'], viewport: { width: 360, height: 740 } });
    const { subscription } = service.browser(name);
    await context.addInitScript(`{
      let kept = null;
      const made = { toJSON: () => (${JSON.stringify(subscription)}), unsubscribe: async () => ((kept = null), true) };
      Object.assign(PushManager.prototype, { subscribe: async () => (kept = made), getSubscription: async () => kept });
    }`);
    const page = await context.newPage();
    await page.goto(hub.url);
    await signInWith(page, hub.admin);
    await page.evaluate('navigator.serviceWorker.ready.then(() => true)');
    return { page, context, device: await Device.of(page, hub.url) };
  }

  const arrived = (name: string): PushArrival[] => service.arrivals.filter((one) => one.browser === name);

  test('the page can be installed', async () => {
    const { page, context } = await open('installer');
    const session = await context.newCDPSession(page);
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
    // A private window cannot install anything, which is all that Chromium has to say against it.
    expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito')).toEqual([]);
    const { data } = await session.send('Page.getAppManifest');
    const { icons } = JSON.parse(data ?? '') as { icons: { src: string; sizes: string; purpose?: string }[] };
    expect(icons.some(({ purpose }) => purpose === 'maskable')).toBe(true);
    for (const { src, sizes } of icons.filter((icon) => icon.sizes !== 'any')) {
      const size = await page.evaluate(
        `fetch(${JSON.stringify(src)}).then(async (answer) => {
          const { width, height } = await createImageBitmap(await answer.blob());
          return width + 'x' + height;
        })`,
      );
      expect([src, size]).toEqual([src, sizes]);
    }
    await context.close();
  });

  test('a browser is told of each request and of its end, and a notification opens its request', async () => {
    hub.model
      .on('Write one')
      .reply(tool('Write', { file_path: `${hub.home.project}/one.txt`, content: 'secret\n' }), text('ok'));
    hub.model
      .on('Write two')
      .reply(tool('Write', { file_path: `${hub.home.project}/two.txt`, content: 'secret\n' }), text('ok'));
    const phone = await open('phone');
    await phone.page.getByRole('button', { name: 'Notifications' }).click();
    await phone.page.getByRole('button', { name: 'Turn on' }).click();
    await phone.page.getByRole('button', { name: 'Send a test' }).click();
    await expect.poll(() => arrived('phone').map(({ payload }) => payload.state)).toEqual(['test']);
    await phone.page.getByRole('button', { name: 'Close' }).click();

    await hub.startSession({ prompt: 'Write one', title: 'One' });
    await hub.startSession({ prompt: 'Write two', title: 'Two' });
    await expect
      .poll(
        () =>
          arrived('phone')
            .slice(1)
            .map(({ payload }) => payload.state),
        { timeout: 20_000 },
      )
      .toEqual(['open', 'open']);
    const asked = arrived('phone')
      .slice(1)
      .map(({ payload }) => payload);
    await expect
      .poll(phone.device.shownAfter(...asked))
      .toMatchObject([
        { title: 'Claude asks to use Write', body: 'Waiting for your answer.' },
        { title: 'Claude asks to use Write' },
      ]);
    expect(JSON.stringify(await phone.device.shown())).not.toMatch(/secret|one\.txt|two\.txt/);
    await cardOf(phone.page, 'Two').waitFor();
    await expect.poll(() => phone.page.title()).toMatch(/^\(2\)/);
    expect(await phone.page.locator('link[rel="icon"]').getAttribute('href')).toMatch(/^data:image\/svg/);

    const [first, second] = (await phone.device.shown()).map(({ tag }) => tag) as [string, string];
    const idOf = (tag: string): string => tag.replace(/^request /, '');
    const shownWhenSettled = async (count: number): Promise<() => Promise<Shown[]>> => {
      const all = () => arrived('phone').filter(({ payload }) => payload.state === 'settled');
      await expect.poll(all, { timeout: 20_000 }).toHaveLength(count);
      return phone.device.shownAfter(all().at(-1)!.payload);
    };
    const deny = (tag: string) => hub.api('POST', `requests/${idOf(tag)}/answer`, { decision: 'deny' }, hub.admin);
    await phone.device.click(first);
    await phone.page.getByRole('heading', { name: 'Request', exact: true }).waitFor();
    await expect.poll(() => phone.page.locator('article.request').getAttribute('data-request')).toBe(idOf(first));

    // Answered on another device: where the page is open, the notification goes away.
    await deny(second);
    await expect.poll(await shownWhenSettled(1)).toEqual([]);

    // A reminder, and then the page is closed: the notification is replaced by a quiet word.
    const reminder = { state: 'open', requestId: idOf(first), kind: 'permission', tool: 'Write', ageMs: 660_000 };
    await expect.poll(phone.device.shownAfter(reminder)).toMatchObject([{ tag: first, body: 'Waiting for 11 min.' }]);
    await phone.page.close();
    await deny(first);
    await expect.poll(await shownWhenSettled(2)).toMatchObject([{ tag: first, title: 'Settled', silent: true }]);
    await phone.context.close();
  });

  test('signing out ends the subscription', async () => {
    const { page, context } = await open('borrowed');
    await page.getByRole('button', { name: 'Notifications' }).click();
    await page.getByRole('button', { name: 'Turn on' }).click();
    await page.getByRole('button', { name: 'Send a test' }).waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    const subscribed = async (): Promise<number> =>
      (await hub.api<{ subscriptions: object[] }>('GET', 'push', undefined, hub.admin)).subscriptions.length;
    const before = await subscribed();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(await subscribed()).toBe(before - 1);
    await context.close();
  });
});

interface Shown {
  readonly title: string;
  readonly body: string;
  readonly tag: string;
  readonly silent: boolean | null;
}

/** What a phone shows, and what is done with it. */
class Device {
  readonly #page: Page;
  readonly #session: CDPSession;
  readonly #origin: string;
  readonly #registrationId: string;

  private constructor(page: Page, session: CDPSession, origin: string, registrationId: string) {
    this.#page = page;
    this.#session = session;
    this.#origin = origin;
    this.#registrationId = registrationId;
  }

  static async of(page: Page, url: string): Promise<Device> {
    // Not the page itself, which may be closed.
    const session = await page.context().newCDPSession(await page.context().newPage());
    const found = new Promise<string>((resolve) => {
      session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
        for (const { registrationId, scopeURL } of registrations) if (scopeURL === url) resolve(registrationId);
      });
    });
    await session.send('ServiceWorker.enable');
    return new Device(page, session, new URL(url).origin, await found);
  }

  /**
   * What is shown once these have arrived, to be asked until it is. On a busy machine Chromium may lose one, so
   * they are delivered again every two seconds, as often as that is asked; the page shows each request once.
   */
  shownAfter(...payloads: readonly object[]): () => Promise<Shown[]> {
    let dueAt = 0;
    return async () => {
      if (performance.now() >= dueAt) {
        for (const payload of payloads) await this.#deliver(payload);
        dueAt = performance.now() + 2_000;
      }
      return this.shown();
    };
  }

  async #deliver(payload: object): Promise<void> {
    await this.#session.send('ServiceWorker.deliverPushMessage', {
      origin: this.#origin,
      registrationId: this.#registrationId,
      data: JSON.stringify(payload),
    });
  }

  /** As its worker sees it: the page may be closed. */
  async shown(): Promise<Shown[]> {
    const worker = this.#page.context().serviceWorkers().at(-1);
    const found = await worker?.evaluate(`registration.getNotifications().then((all) =>
      all.map(({ title, body, tag, silent }) => ({ title, body, tag, silent })))`);
    return (found ?? []) as Shown[];
  }

  async click(tag: string): Promise<void> {
    const worker = this.#page.context().serviceWorkers().at(-1);
    await worker?.evaluate(`registration.getNotifications({ tag: ${JSON.stringify(tag)} }).then(([notification]) =>
      void dispatchEvent(new NotificationEvent('notificationclick', { notification }))
    )`);
  }
}
