import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { overflows, seriousFindings } from './axe.ts';
import { openBrowser, openPage, PHONE, type OpenPage } from './browser.ts';
import { ago, calls, event, fixtureData, request, returns, says, session } from './fixture-data.ts';
import { FixtureHub, type FixtureData } from './fixture-hub.ts';

/** The built page in a real browser, over a hub that answers from memory. The journeys with the real one are in journeys.test.ts. */

let browser: Browser;
const open: { hub?: FixtureHub; page?: OpenPage } = {};

beforeAll(async () => {
  browser = await openBrowser();
}, 60_000);
afterAll(() => browser.close());
afterEach(async () => {
  await open.page?.context.close();
  await open.hub?.close();
});

async function show(
  change: (data: FixtureData) => void = () => undefined,
  options: Parameters<typeof openPage>[1] = {},
  fragment = '#/',
): Promise<OpenPage & { hub: FixtureHub }> {
  const data = fixtureData();
  change(data);
  const hub = await FixtureHub.open(data);
  open.hub = hub;
  const opened = await openPage(browser, options);
  open.page = opened;
  await opened.page.goto(`${hub.url}#code=once`);
  await opened.page.getByRole('status').getByText('Connected').waitFor();
  if (fragment !== '#/') await opened.page.goto(hub.url + fragment);
  return { ...opened, hub };
}

const SESSION = '#/sessions/11111111-1111-4111-8111-111111111111';
const AT_REST = '#/sessions/22222222-2222-4222-8222-222222222222';
const card = (page: Page, id: string) => page.locator(`[data-request="${id}"]`);
const button = (page: Page, id: string, name: string) => card(page, id).getByRole('button', { name, exact: true });

describe('every page', () => {
  test.each([
    { name: 'on a phone, light', viewport: PHONE, touch: true, dark: false },
    { name: 'on a desktop, dark', dark: true },
  ])(
    '$name: nothing keeps anybody from using it, nothing sticks out, nothing leaves for another host',
    async (options) => {
      const { page, hub, hosts, complaints } = await show(() => undefined, options);
      const pages: [fragment: string, ready: string][] = [
        ['#/', 'text=Always allow'],
        ['#/sessions', 'text=Upgrade the build'],
        [SESSION, 'text=npm test -- --run price'],
        [AT_REST, '.composer'],
        [`${AT_REST}/work`, 'text=src/price.ts'],
        [`${AT_REST}/details`, 'text=Options'],
        ['#/audit', 'text=claude_code'],
        ['#/tokens', 'text=old laptop'],
        ['#/new', 'text=Start session'],
        ['#/nowhere', 'text=There is no such page'],
      ];
      for (const [fragment, ready] of pages) {
        await page.goto(hub.url + fragment);
        await page.locator(ready).first().waitFor();
        expect(await seriousFindings(page), fragment).toEqual([]);
        expect(await overflows(page), `${fragment} is wider than the screen`).toBe(false);
      }
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Token').waitFor();
      expect(await seriousFindings(page), 'sign-in').toEqual([]);
      expect(complaints).toEqual([]);
      expect([...hosts]).toEqual([new URL(hub.url).host]);
    },
    120_000,
  );

  test('what a role may not do is not shown', async () => {
    const { page, hub } = await show((data) => {
      data.me.principal.role = 'viewer';
      data.me.may = { start: false, answer: 'none', readAll: true, readAudit: false, manageTokens: false };
      for (const one of data.requests) one.mayAnswer = false;
      for (const one of data.sessions) one.may = [];
    });
    await page.getByText('Plan to review').waitFor();
    const names = async () =>
      (await page.getByRole('button').allInnerTexts()).filter((name) => !name.endsWith('of the sub-agent'));
    expect(await names()).toEqual(['Sign out']);
    expect(await page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual(['Inbox\n4', 'Sessions']);
    await page.goto(hub.url + SESSION);
    await page.getByRole('heading', { name: 'Fix the failing price test' }).waitFor();
    expect(await names()).toEqual(['Sign out']);
    expect(await page.getByRole('textbox').count()).toBe(0);
  });
});

describe('answers', () => {
  test('two clicks are one answer, shown as confirmed with who gave it', async () => {
    const { page, hub } = await show();
    await button(page, 'req-bash', 'Allow').dblclick();
    await card(page, 'req-bash').getByText('Allowed by you (Anna)').waitFor();
    expect(hub.calls.filter(({ path }) => path === 'requests/req-bash/answer')).toHaveLength(1);
    expect(await button(page, 'req-bash', 'Allow').count()).toBe(0);
  });

  test('an answer that got lost on the way is sent again with the same key', async () => {
    const { page, hub } = await show();
    let lost = 2;
    hub.overrides.set('POST requests/req-bash/answer', () =>
      lost-- > 0 ? { status: 503, json: { error: { code: 'UNAVAILABLE', message: 'The store is away.' } } } : undefined,
    );
    await card(page, 'req-bash').getByLabel('Message to Claude').fill('Not on a Friday');
    await button(page, 'req-bash', 'Deny').click();
    await card(page, 'req-bash').getByText('The store is away.').waitFor();
    await card(page, 'req-bash').getByText('Denied by you (Anna)').waitFor();
    const sent = hub.calls.filter(({ path }) => path === 'requests/req-bash/answer');
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ key }) => key)).size).toBe(1);
    expect(sent[0]?.body).toEqual({ decision: 'deny', message: 'Not on a Friday' });
  });

  test('who comes too late is told who decided what', async () => {
    const { page, hub } = await show();
    const outcome = {
      decision: 'deny' as const,
      by: 'Ben',
      source: 'human',
      at: ago(5),
      message: 'Use the other script',
    };
    hub.overrides.set('POST requests/req-bash/answer', () => ({
      status: 409,
      json: { error: { code: 'PERMISSION_REQUEST_NOT_FOUND', message: 'Settled.' }, outcome },
    }));
    await button(page, 'req-bash', 'Allow').click();
    const told = card(page, 'req-bash').locator('.outcome');
    await told.getByText('Too late.').waitFor();
    expect(await told.innerText()).toContain('Denied by Ben');
    expect(await told.innerText()).toContain('Use the other script');
  });

  test('a request that somebody else settles stays in its place, and a new one comes below', async () => {
    const { page, hub } = await show();
    await button(page, 'req-bash', 'Allow').waitFor();
    const before = await card(page, 'req-bash').boundingBox();
    const first = hub.data.requests[0]!;
    hub.tell('request', {
      ...first,
      status: 'settled',
      mayAnswer: false,
      outcome: { decision: 'allow', by: 'Ben', source: 'human', at: ago(0) },
    });
    await card(page, 'req-edit').getByText('Allowed by Ben').waitFor();
    hub.tell('request', request('req-new', first.sessionId, { createdAt: ago(0), input: { command: 'date' } }));
    await page.getByText('4 requests waiting').waitFor();
    const after = await card(page, 'req-bash').boundingBox();
    expect(after?.x).toBe(before?.x);
    await page.getByRole('button', { name: 'Clear 1 answered' }).click();
    expect(await card(page, 'req-edit').count()).toBe(0);
  });

  test('questions are answered by choice or in own words, plans and changed input go along', async () => {
    const { page, hub } = await show();
    const bodyOf = (id: string) => hub.calls.find(({ path }) => path === `requests/${id}/answer`)?.body;
    await card(page, 'req-question').getByLabel('fr-CA').check();
    await button(page, 'req-question', 'Answer').click();
    await card(page, 'req-question').getByText('Allowed by you').waitFor();
    expect(bodyOf('req-question')).toEqual({ decision: 'allow', answers: { 'Which French should be used?': 'fr-CA' } });
    await button(page, 'req-plan', 'Allow').click();
    await card(page, 'req-plan').getByText('Allowed by you').waitFor();
    await button(page, 'req-bash', 'Change…').click();
    await card(page, 'req-bash').getByLabel('Changed command').fill('npm test');
    await button(page, 'req-bash', 'Run with changes').click();
    await card(page, 'req-bash').getByText('Allowed by you').waitFor();
    expect(bodyOf('req-bash')).toEqual({
      decision: 'allow',
      updatedInput: { command: 'npm test', description: 'Run the price tests' },
    });
  });

  test('keys decide on the request in focus, and never while somebody writes', async () => {
    const { page, hub } = await show();
    await button(page, 'req-edit', 'Allow').waitFor();
    await page.keyboard.press('a');
    await card(page, 'req-edit').getByLabel('Message to Claude').pressSequentially('add jazz');
    expect(hub.calls.some(({ method, path }) => method === 'POST' && path.startsWith('requests/'))).toBe(false);
    await card(page, 'req-edit').focus();
    await page.keyboard.press('j');
    await page.keyboard.press('A');
    await card(page, 'req-bash').getByText('Allowed by you').waitFor();
    expect(hub.calls.find(({ path }) => path === 'requests/req-bash/answer')?.body).toEqual({
      decision: 'allow',
      always: true,
    });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  });
});

test('after a lost connection the page says so, reads on, and misses nothing', async () => {
  const { page, hub } = await show(() => undefined, {}, SESSION);
  await page.getByText('Only the invoice rounds.').waitFor();
  hub.overrides.set('GET events', () => ({ status: 503, json: {} }));
  hub.cutStreams();
  await page
    .getByRole('status')
    .getByText(/Offline since \d\d:\d\d/)
    .waitFor();
  hub.data.events['11111111-1111-4111-8111-111111111111']?.push(says(15, 'Said while nobody listened.'));
  hub.overrides.clear();
  await page.getByRole('status').getByText('Connected').waitFor();
  await page.getByText('Said while nobody listened.').waitFor();
});

test('a sign-in that has ended leads back to the sign-in page, with words', async () => {
  const { page, hub } = await show();
  hub.overrides.set('GET sessions', () => ({
    status: 401,
    json: { error: { code: 'UNAUTHENTICATED', message: 'No.' } },
  }));
  await page.getByRole('link', { name: 'Sessions' }).click();
  await page.getByText('Your sign-in has ended').waitFor();
  await page.getByLabel('Token').waitFor();
});

describe('content', () => {
  const HOSTILE = [
    '<img src="http://evil.test/x" onerror="document.title=1">',
    '<script>document.title="owned"</script>',
    '[click](javascript:document.title=2)',
    '![pixel](http://evil.test/pixel.png)',
    '<iframe srcdoc="<script>parent.document.title=3</script>"></iframe>',
    '\u001b[2J\u001b]0;owned\u0007',
    '"><style>*{display:none}</style>',
    '{{constructor.constructor("document.title=4")()}}',
    '\u202Etxt.exe',
  ].join('\n\n');

  test('of sessions, files, tools and people is shown as text, never run or fetched', async () => {
    const id = '11111111-1111-4111-8111-111111111111';
    const { page, hub, hosts, complaints } = await show((data) => {
      const first = data.sessions[0]!;
      first.title = HOSTILE;
      first.activity = HOSTILE;
      first.cwd = `/tmp/${HOSTILE}`;
      first.owner.name = HOSTILE;
      data.requests = [
        request('r1', id, { input: { command: HOSTILE, [HOSTILE]: HOSTILE }, said: HOSTILE, toolName: `Bash` }),
        request('r2', id, { toolName: HOSTILE, input: { nested: { deep: HOSTILE } }, alwaysAllows: HOSTILE }),
        request('r3', id, { type: 'plan_review', toolName: 'ExitPlanMode', plan: HOSTILE, input: {} }),
        request('r4', id, {
          toolName: 'Edit',
          input: { file_path: `/tmp/${HOSTILE}`, old_string: HOSTILE, new_string: `${HOSTILE}!` },
        }),
        request('r5', id, {
          type: 'user_question',
          toolName: 'AskUserQuestion',
          questions: [{ question: HOSTILE, header: HOSTILE, options: [{ label: HOSTILE, description: HOSTILE }] }],
        }),
      ];
      for (const one of data.requests)
        one.session = { title: HOSTILE, cwd: HOSTILE, owner: { id: 'x', name: HOSTILE } };
      data.events[id] = [
        event(1, 'progress', { kind: 'prompt', text: HOSTILE, messageId: HOSTILE }),
        says(2, HOSTILE),
        calls(3, 't', HOSTILE, { [HOSTILE]: HOSTILE }),
        returns(4, 't', HOSTILE),
        event(5, 'error', { kind: 'error', message: HOSTILE }),
      ];
      data.diffs[id] = {
        filesChanged: 1,
        insertions: 1,
        deletions: 0,
        totalBytes: 1,
        diff: `diff --git a/<b>x</b> b/<b>x</b>\n--- a/<b>x</b>\n+++ b/<b>x</b>\n@@ -0,0 +1 @@\n+${HOSTILE.replaceAll('\n', ' ')}\n`,
      };
      data.audit = [
        { time: ago(1), kind: HOSTILE, who: HOSTILE, what: HOSTILE, outcome: HOSTILE, details: { x: HOSTILE } },
      ];
      data.tokens[0]!.name = HOSTILE;
    });
    for (const fragment of [
      '#/',
      '#/sessions',
      SESSION,
      `${SESSION}/work`,
      `${SESSION}/details`,
      '#/audit',
      '#/tokens',
    ]) {
      await page.goto(hub.url + fragment);
      await page
        .locator('main')
        .getByText('document.title')
        .or(page.locator('main').getByText('onerror'))
        .first()
        .waitFor();
      expect(await page.title(), fragment).toContain('Claude Code hub');
      expect(await page.locator('img, iframe, script:not([src^="./main"]), style').count(), fragment).toBe(0);
      expect(await page.locator('a[href^="javascript" i]').count(), fragment).toBe(0);
    }
    await page.goto(hub.url);
    expect(await card(page, 'r1').locator('.code-command').innerText()).toContain('␛');
    expect(await card(page, 'r1').locator('.code-command').innerText()).toContain('U+202E');
    expect([...hosts]).toEqual([new URL(hub.url).host]);
    expect(complaints).toEqual([]);
  });
});

describe('long lists', () => {
  test('of a thousand sessions and requests only what is near the screen exists', async () => {
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

  test('a timeline is shown from its end, and read backwards without moving what is looked at', async () => {
    const id = '11111111-1111-4111-8111-111111111111';
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
    hub.tell('event', { sessionId: id, ...hub.data.events[id]!.at(-1)! });
    await page.getByText('Line number 3001').waitFor();
    await page.evaluate(`document.querySelector('.timeline').scrollTo({ top: 0 })`);
    await expect.poll(() => hub.calls.filter(({ path }) => path.endsWith('/events')).length).toBeGreaterThan(2);
    await page.getByText('Line number 2702', { exact: true }).waitFor();
    const place = page.getByText('Line number 2702', { exact: true });
    const before = await place.boundingBox();
    hub.tell('event', { sessionId: id, ...says(3002, 'Line number 3002') });
    await page.getByRole('button', { name: 'Latest' }).waitFor();
    expect((await place.boundingBox())?.y).toBe(before?.y);
  });
});

function lastRow(page: Page): Promise<number> {
  return page
    .locator('.session-row .row-title')
    .last()
    .innerText()
    .then((words) => Number(/\d+$/.exec(words)?.[0]));
}
