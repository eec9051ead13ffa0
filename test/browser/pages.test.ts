import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { overflows, seriousFindings } from './axe.ts';
import { DESKTOP, PHONE } from './browser.ts';
import { event, request, says } from './fixture-data.ts';
import { BUILT } from './fixture-hub.ts';
import { AT_REST, SESSION, SESSION_ID, show, usePages } from './page-world.ts';
import { answers } from './pages/answers.ts';
import { content } from './pages/content.ts';
import { forms } from './pages/forms.ts';
import { lists } from './pages/lists.ts';
import { rules } from './pages/rules.ts';
import { timeline } from './pages/timeline.ts';
import { unseen } from './pages/unseen.ts';
import { work } from './pages/work.ts';
import { touchFindings } from './touch.ts';

/** The dashboard over a fixture hub. Tests with the real hub are in journeys.test.ts. */

usePages();

describe('every page', () => {
  const PAGES: [fragment: string, ready: string][] = [
    ['#/', 'text=Always allow'],
    ['#/sessions', 'text=Upgrade the build'],
    [SESSION, 'text=npm test -- --run price'],
    [AT_REST, '.composer'],
    [`${AT_REST}/work`, 'text=src/price.ts'],
    [`${AT_REST}/details`, 'text=Options'],
    ['#/audit', 'text=claude_code'],
    ['#/rules', 'text=used 3 times'],
    ['#/tokens', 'text=old laptop'],
    ['#/costs', 'text=By project'],
    ['#/new', 'text=Start session'],
    ['#/nowhere', 'text=There is no such page'],
  ];

  test('is accessible, fits the screen and contacts no other host, on desktop and phone, in light and dark mode', async () => {
    const { page, hub, hosts, errors } = await show();
    const inspect = async (name: string) => {
      for (const [device, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme: 'light' });
        expect(await seriousFindings(page), `${name}, ${device}`).toEqual([]);
        expect(await overflows(page), `${name} overflows the ${device} screen`).toBe(false);
        // Dark mode changes nothing but colours.
        await page.emulateMedia({ colorScheme: 'dark' });
        expect(await seriousFindings(page, ['color-contrast']), `${name}, ${device}, dark`).toEqual([]);
      }
    };
    for (const [fragment, ready] of PAGES) {
      await page.goto(hub.url + fragment);
      await page.locator(ready).first().waitFor();
      await inspect(fragment);
    }
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    await inspect('sign-in');
    expect(errors).toEqual([]);
    expect([...hosts]).toEqual([new URL(hub.url).host]);
  }, 120_000);

  test('can be used with a finger: nothing is small, off the edge, or scrolls inside what scrolls', async () => {
    const { page, hub } = await show(
      ({ requests, events, audit }) => {
        audit[1]!.by = 'Al';
        // Taller than any box that scrolls would be.
        const long = Array.from({ length: 59 }, (_, index) => `line ${index}`).join('\n');
        requests.unshift(request('req-long', SESSION_ID, { input: { command: long } }));
        events[SESSION_ID]![0] = event(1, 'progress', { kind: 'prompt', messageId: 'long', text: long });
        for (const one of requests) one.said = 'Like this:\n\n```ts\nconst one = 1;\n```';
      },
      { viewport: PHONE, touch: true },
    );
    for (const [fragment, ready] of PAGES) {
      await page.goto(hub.url + fragment);
      await page
        .locator(fragment === SESSION ? '.timeline' : ready)
        .first()
        .waitFor({ state: 'attached' });
      expect(await touchFindings(page), fragment).toEqual([]);
    }
    await page.goto(`${hub.url}${SESSION}`);
    await page.getByRole('button', { name: 'Start' }).click();
    await page.locator('.row.prompt').waitFor();
    expect(await touchFindings(page)).toEqual([]);
    const search = page.getByLabel('Search in this session');
    await search.fill('line');
    await page.getByRole('button', { name: 'Previous match' }).click();
    await page.getByText(/^1 of \d+ match/).waitFor();
    expect((await search.boundingBox())!.width).toBeGreaterThan(100);
    expect(await touchFindings(page)).toEqual([]);
    // The button to copy stays where there is no pointer: it must not lie on what it copies.
    await page.evaluate(`document.querySelector('.timeline').scrollTo({ top: 1300 })`);
    await page.locator('.row.text .copy').first().waitFor();
    const positions = `[...document.querySelectorAll('.copy')].map((one) => getComputedStyle(one).position)`;
    expect(new Set(await page.evaluate<string[]>(positions))).toEqual(new Set(['static']));
  });

  test('the first view takes at most 90 kB compressed, and everything the dashboard can load 120 kB', async () => {
    // Earlier builds may have left files behind, so only files that the page refers to are counted.
    const sizes = new Map<string, number>();
    const sum = (): number => [...sizes.values()].reduce((total, size) => total + size, 0);
    /** What only some pages need. */
    const LATER = /^(?:phone-dialog|highlight)-/;
    const load = async (name: string): Promise<void> => {
      if (sizes.has(name)) return;
      const file = await readFile(path.join(BUILT, name));
      sizes.set(name, gzipSync(file).length);
      for (const [, next = ''] of file.toString().matchAll(/["'`]\.\/([\w-]+\.(?:js|css|svg))["'`]/g))
        if (!LATER.test(next) || isFirstView === 'counted') await load(next);
    };
    let isFirstView: 'counting' | 'counted' = 'counting';
    await load('index.html');
    expect(sum()).toBeLessThan(90_000);
    isFirstView = 'counted';
    sizes.clear();
    await load('index.html');
    const names = [...sizes.keys()].join(' ');
    for (const part of ['main-', 'style-', 'diff-view-', 'markdown-view-']) expect(names).toContain(part);
    expect(sum()).toBeLessThan(120_000);
  });

  test('shows a viewer no controls it may not use', async () => {
    const { page, hub } = await show((data) => {
      data.me.principal.role = 'viewer';
      data.me.may = { start: false, answer: 'none', readAll: true, readAudit: false, manageTokens: false };
      for (const one of data.requests) one.mayAnswer = false;
      for (const one of data.sessions) one.may = [];
    });
    await page.getByText('Plan to review').waitFor();
    const names = async () =>
      (await page.getByRole('button').allInnerTexts()).filter((name) => !/of the sub-agent$|^Copy$/.test(name));
    expect(await names()).toEqual(['Notifications', 'Sign out', 'Keyboard']);
    expect(await page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual([
      'Inbox\n4',
      'Sessions',
      'Rules',
    ]);
    for (const fragment of ['#/tokens', '#/audit', '#/new']) {
      await page.goto(hub.url + fragment);
      await page.getByText(/^Your role may not/).waitFor();
      expect(await names()).toEqual(['Notifications', 'Sign out', 'Keyboard']);
    }
    await page.goto(hub.url + SESSION);
    await page.getByRole('heading', { name: 'Fix the failing price test' }).waitFor();
    const aroundIt = ['All', 'Waiting', 'Working', 'At rest', 'Cancelled', 'Archived', 'Start ↑', 'Outline'];
    const left = (await names()).filter((name) => !aroundIt.includes(name));
    expect(left).toEqual(['Notifications', 'Sign out', 'Keyboard']);
    expect(await page.getByRole('textbox').count()).toBe(0);
  });
});

test('the page shows that the connection is lost, reconnects, and catches up', async () => {
  const { page, hub } = await show(() => undefined, {}, SESSION);
  await page.getByText('Only the invoice rounds.').waitFor();
  hub.overrides.set('GET events', () => ({ status: 503, json: {} }));
  hub.cutStreams();
  await page
    .getByRole('status')
    .getByText(/Offline since \d\d:\d\d/)
    .waitFor();
  hub.data.events[SESSION_ID]?.push(says(15, 'Said while nobody listened.'));
  hub.overrides.clear();
  await page.getByRole('status').getByText('Connected').waitFor();
  await page.getByText('Said while nobody listened.').waitFor();
});

test('a sign-in that has ended leads back to the sign-in page, with an explanation', async () => {
  const { page, hub } = await show();
  hub.overrides.set('GET sessions', () => ({
    status: 401,
    json: { error: { code: 'UNAUTHENTICATED', message: 'No.' } },
  }));
  await page.getByRole('link', { name: 'Sessions' }).click();
  await page.getByText('Your sign-in has ended').waitFor();
  await page.getByLabel('Token').waitFor();
});

describe('answers', answers);
describe('content', content);
describe('what was not shown', unseen);
describe('forms', forms);
describe('lists', lists);
describe('the timeline', timeline);
describe('rules', rules);
describe('work', work);
