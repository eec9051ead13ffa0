import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ago, request, says, session } from '../fixture-data.ts';
import { AT_REST, card, SESSION, SESSION_ID, show } from '../page-world.ts';

export function lists(): void {
  test('follow sessions as they are added, start to match the filter and are removed', async () => {
    const { page, hub } = await show(undefined, {}, '#/sessions');
    const titles = () => page.locator('.session-row .row-title').allInnerTexts();
    await page.getByText('Upgrade the build').waitFor();
    hub.publish('session', session('fresh', { title: 'Just begun', status: 'running', state: 'running' }));
    await expect.poll(async () => (await titles())[0]).toBe('Just begun');
    await page.getByRole('button', { name: 'Waiting', exact: true }).click();
    await expect.poll(titles).not.toContain('Just begun');
    hub.publish('session', session('fresh', { title: 'Just begun', status: 'waiting_permission', state: 'waiting' }));
    await expect.poll(titles).toContain('Just begun');
    hub.publish('removed', { sessionId: 'fresh' });
    await expect.poll(titles).not.toContain('Just begun');
    // What it is searched and filtered by is part of the address, to come back to and to pass on.
    // One after the other, before the page has been drawn again.
    await page.evaluate(`{
      [...document.querySelectorAll('.chip')].find(({ innerText }) => innerText === 'At rest').click();
      const field = document.querySelector('search input');
      field.value = 'french';
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }`);
    await page.locator('.session-row', { hasText: 'Add French translations' }).click();
    await page.getByRole('heading', { name: 'Add French translations' }).waitFor();
    await page.goBack();
    await expect.poll(() => page.url()).toContain('#/sessions?search=french&status=rest');
    await expect.poll(() => page.getByLabel('Search sessions').inputValue()).toBe('french');
    await page.goto(hub.url + SESSION);
    await page.getByText('Only the invoice rounds.').waitFor();
    hub.publish('removed', { sessionId: SESSION_ID });
    await page.getByText('There is no such session').waitFor();
  });

  test('keep unsent text when its field is scrolled away or another tab is opened', async () => {
    const { page, hub } = await show((data) => {
      const id = data.sessions[0]!.sessionId;
      data.requests = Array.from({ length: 100 }, (_, index) =>
        request(`r-${index}`, id, { createdAt: ago(5000 - index) }),
      );
    });
    await card(page, 'r-0').getByLabel('Message to Claude').fill('Not before Friday');
    await page.evaluate(`document.querySelector('main').scrollTo({ top: 1e9 })`);
    await expect.poll(() => card(page, 'r-0').count()).toBe(0);
    await page.evaluate(`document.querySelector('main').scrollTo({ top: 0 })`);
    expect(await card(page, 'r-0').getByLabel('Message to Claude').inputValue()).toBe('Not before Friday');
    await page.goto(hub.url + SESSION);
    await page.getByLabel('Message', { exact: true }).fill('And then');
    await page.getByRole('link', { name: 'Work', exact: true }).click();
    await page.getByRole('link', { name: 'Timeline' }).click();
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('And then');
  });

  test('of a thousand sessions or requests render only the rows near the viewport', async () => {
    const { page, hub } = await show((data) => {
      const id = data.sessions[0]!.sessionId;
      data.sessions = Array.from({ length: 1000 }, (_, index) =>
        session(`s-${index}`, { title: `Session number ${index}` }),
      );
      data.requests = Array.from({ length: 1000 }, (_, index) =>
        request(`r-${index}`, id, { createdAt: ago(5000 - index) }),
      );
    });
    await card(page, 'r-0').waitFor();
    expect(await page.locator('[data-request]').count()).toBeLessThan(20);
    await page.goto(`${hub.url}#/sessions`);
    await page.getByText('Session number 0').waitFor();
    expect(await page.locator('.session-row').count()).toBeLessThan(60);
    for (let last = 0; last < 999;) {
      await page.evaluate(`document.querySelector('main').scrollTo({ top: 1e9 })`);
      await expect.poll(async () => lastRow(page)).toBeGreaterThan(last);
      last = await lastRow(page);
    }
    expect(await page.locator('.session-row').count()).toBeLessThan(60);
  });

  test('a timeline opens at its end, loads earlier events on demand, and does not jump when a new event arrives', async () => {
    const id = SESSION_ID;
    const { page, hub } = await show(
      (data) => {
        data.requests = [];
        data.events[id] = Array.from({ length: 3000 }, (_, index) => says(index + 1, `Line number ${index + 1}`));
      },
      {},
      SESSION,
    );
    await page.getByText('Line number 3000').waitFor();
    expect(await page.locator('.timeline [role=listitem]').count()).toBeLessThan(120);
    hub.data.events[id]!.push(says(3001, 'Line number 3001'));
    hub.publish('event', { sessionId: id, ...hub.data.events[id]!.at(-1)! });
    await page.getByText('Line number 3001').waitFor();
    await page.evaluate(`document.querySelector('.timeline').scrollTo({ top: 0 })`);
    await expect.poll(() => hub.calls.filter(({ path }) => path.endsWith('/events')).length).toBeGreaterThan(2);
    await page.getByText('Line number 2702', { exact: true }).waitFor();
    const place = page.getByText('Line number 2702', { exact: true });
    const top = async (): Promise<number | undefined> => (await place.boundingBox())?.y;
    let before: number | undefined;
    const hasSettled = async (): Promise<boolean> => {
      const last = before;
      before = await top();
      return before !== undefined && before === last;
    };
    // Rows move until the earlier ones have been measured.
    await expect.poll(hasSettled).toBe(true);
    // It was the first row, and is still the one the reader looks at.
    const view = (await page.locator('.timeline').boundingBox())!;
    expect(before).toBeGreaterThanOrEqual(view.y);
    expect(before).toBeLessThan(view.y + view.height);
    hub.publish('event', { sessionId: id, ...says(3002, 'Line number 3002') });
    await page.getByRole('button', { name: 'Latest' }).waitFor();
    expect(await top()).toBe(before);
  });

  test('earlier events that arrive after still earlier ones are shown once', async () => {
    const { page } = await show(
      (data) => {
        data.requests = [];
        data.events[SESSION_ID] = Array.from({ length: 2500 }, (_, index) =>
          says(index + 1, `Line number ${index + 1}`),
        );
      },
      {},
      SESSION,
    );
    await page.getByText('Line number 2500').waitFor();
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => (release = resolve));
    await page.route(/events\?.*limit=300/, async (route) => {
      await isReleased;
      await route.continue();
    });
    const isAsked = page.waitForRequest(/events\?.*limit=300/);
    await page.evaluate(`document.querySelector('.timeline').scrollTo({ top: 0 })`);
    await isAsked;
    await page.keyboard.press('Home');
    await page.getByText('Line number 1', { exact: true }).waitFor();
    const late = page.waitForResponse(/events\?.*limit=300/);
    release();
    await (await late).finished();
    await page.keyboard.press('End');
    await page.getByText('Line number 2500').waitFor();
    await page.keyboard.press('Home');
    await page.getByText('Line number 1', { exact: true }).waitFor();
    expect(await page.getByText('Earlier events load').count()).toBe(0);
    const size = `document.querySelector('.timeline [role=listitem]').ariaSetSize`;
    expect(await page.evaluate(size)).toBe('2500');
  });

  test('mark what is new, in every tab until it was seen in one', async () => {
    const { page, hub, context } = await show(undefined, {}, AT_REST);
    await page.getByRole('heading', { name: 'Add French translations' }).waitFor();
    await page.goto(`${hub.url}#/sessions`);
    // Its row is beside the session, too: while that is on the screen, what is new counts as seen.
    await page.getByRole('heading', { name: 'Add French translations' }).waitFor({ state: 'detached' });
    const row = page.locator('.session-row', { hasText: 'Add French translations' });
    await row.waitFor();
    const known = hub.data.sessions.find(({ sessionId }) => AT_REST.endsWith(sessionId))!;
    known.lastActiveAt = new Date().toISOString();
    hub.publish('session', known);
    await row.getByLabel('Not seen yet').waitFor();
    const tab = await context.newPage();
    await tab.goto(hub.url + AT_REST);
    await tab.getByRole('heading', { name: 'Add French translations' }).waitFor();
    await row.getByLabel('Not seen yet').waitFor({ state: 'detached' });
    await tab.close();
  });

  test('stand beside a session where there is room for both, with titles that can be read', async () => {
    const title = 'Find out why the tests are slow';
    const { page, hub } = await show(
      ({ sessions: [first] }) => {
        first!.title = title;
      },
      {},
      SESSION,
    );
    const list = page.getByRole('complementary', { name: 'Sessions' });
    const row = list.getByRole('link', { name: title });
    await row.waitFor();
    expect(await row.getAttribute('aria-current')).toBe('true');
    const cut = `[...document.querySelectorAll('aside .row-title')].some((one) => one.scrollWidth > one.clientWidth)`;
    expect(await page.evaluate(cut)).toBe(false);
    const [beside, session] = [await list.boundingBox(), await page.locator('main').boundingBox()];
    expect(beside!.x + beside!.width).toBeLessThanOrEqual(session!.x + 1);
    await list.getByText('Add French translations').click();
    await page.getByRole('heading', { name: 'Add French translations' }).waitFor();
    expect(page.url()).toBe(hub.url + AT_REST);
    await page.setViewportSize({ width: 1279, height: 800 });
    await list.waitFor({ state: 'detached' });
  });

  test('on a phone the header of a session folds away from what is read, which does not move on the screen', async () => {
    const id = SESSION_ID;
    const { page } = await show(
      (data) => {
        data.requests = [];
        data.events[id] = Array.from({ length: 200 }, (_, index) => says(index + 1, `Line number ${index + 1}`));
      },
      { viewport: { width: 390, height: 800 }, touch: true },
      SESSION,
    );
    await page.getByText('Line number 200').waitFor();
    const tabs = page.getByRole('navigation', { name: 'Parts of the session' });
    await tabs.waitFor();
    const line = page.getByText('Line number 190', { exact: true });
    const before = await line.boundingBox();
    await page.evaluate(`document.querySelector('.timeline').scrollBy({ top: -100 })`);
    await tabs.waitFor({ state: 'hidden' });
    await page.getByRole('heading', { name: 'Fix the failing price test' }).waitFor();
    await expect.poll(async () => Math.round((await line.boundingBox())!.y - before!.y)).toBe(100);
    await page.getByRole('button', { name: 'Show the controls' }).click();
    await tabs.waitFor();
    await expect.poll(async () => Math.round((await line.boundingBox())!.y - before!.y)).toBe(100);
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.getByText('Line number 200').waitFor();
    await tabs.waitFor();
  });
}

function lastRow(page: Page): Promise<number> {
  return page
    .locator('.session-row .row-title')
    .last()
    .innerText()
    .then((title) => Number(/\d+$/.exec(title)?.[0]));
}
