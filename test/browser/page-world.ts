import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { openBrowser, openPage, type OpenPage } from './browser.ts';
import { fixtureData } from './fixture-data.ts';
import { FixtureHub, type FixtureData } from './fixture-hub.ts';

/** The built dashboard in a real browser, over a hub that answers from memory. Tests in a file share one browser. */

let browser: Browser | undefined;
const open: { hub?: FixtureHub; page?: OpenPage } = {};

export function usePages(): void {
  beforeAll(async () => {
    browser = await openBrowser();
  }, 60_000);
  afterAll(() => browser?.close());
  afterEach(async () => {
    await open.page?.context.close();
    await open.hub?.close();
  });
}

/** Opens the dashboard, signed in, at the page named by the fragment. */
export async function show(
  change: (data: FixtureData) => void = () => undefined,
  options: Parameters<typeof openPage>[1] = {},
  fragment = '#/',
): Promise<OpenPage & { hub: FixtureHub }> {
  if (!browser) throw new Error('Call usePages() first: it opens the browser');
  const data = fixtureData();
  change(data);
  const hub = await FixtureHub.open(data);
  open.hub = hub;
  const opened = await openPage(browser, options);
  open.page = opened;
  await opened.page.goto(`${hub.url}#code=once`);
  await opened.page.getByRole('status').getByText('Connected').waitFor();
  await richPartsShown(opened.page);
  if (fragment !== '#/') await opened.page.goto(hub.url + fragment);
  return { ...opened, hub };
}

/** Until they are loaded, their plain forms are shown. */
async function richPartsShown(page: Page): Promise<void> {
  const loaded = () =>
    page.evaluate<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)
      .filter((name) => name.endsWith('.js') && name.includes('-view'))`);
  await expect.poll(async () => (await loaded()).join()).toMatch(/diff-view.*markdown-view|markdown-view.*diff-view/);
  await page.evaluate(`Promise.all(${JSON.stringify(await loaded())}.map((name) => import(name)))`);
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
}

export const SESSION_ID = '11111111-1111-4111-8111-111111111111';
export const SESSION = `#/sessions/${SESSION_ID}`;
export const AT_REST = '#/sessions/22222222-2222-4222-8222-222222222222';
export const card = (page: Page, id: string) => page.locator(`[data-request="${id}"]`);
/** The request whose card has the focus; otherwise what kind of element has it. */
export const focused = (page: Page) =>
  page.evaluate<string>('document.activeElement.dataset.request ?? document.activeElement.tagName.toLowerCase()');
export const button = (page: Page, id: string, name: string) =>
  card(page, id).getByRole('button', { name, exact: true });
