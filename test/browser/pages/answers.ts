import { expect, test } from 'vitest';
import { DESKTOP, PHONE } from '../browser.ts';
import { ago, calls, event, request } from '../fixture-data.ts';
import { button, card, focused, SESSION, SESSION_ID, show } from '../page-world.ts';

/** The screen has no room for three requests. */
const LOW = { viewport: { width: 1280, height: 620 } };

export function answers(): void {
  test('are sent once on a double click, and shown as confirmed with the name of whoever gave them', async () => {
    const { page, hub } = await show();
    await button(page, 'req-bash', 'Allow').dblclick();
    await card(page, 'req-bash').getByText('Allowed by you (Anna)').waitFor();
    expect(hub.calls.filter(({ path }) => path === 'requests/req-bash/answer')).toHaveLength(1);
    expect(await button(page, 'req-bash', 'Allow').count()).toBe(0);
  });

  test('by pointer scroll nothing: the next request does not come under it', async () => {
    const { page, hub } = await show((data) => {
      data.requests = Array.from({ length: 9 }, (_, index) =>
        request(`p-${index}`, SESSION_ID, { input: { command: `make ${index}` }, createdAt: ago(500 - index) }),
      );
    }, LOW);
    await card(page, 'p-2').evaluate((element) => element.scrollIntoView({ block: 'end' }));
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    const top = () => page.evaluate<number>(`document.querySelector('main').scrollTop`);
    const before = await top();
    const box = (await button(page, 'p-2', 'Allow').boundingBox())!;
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2, { clickCount: 2 });
    await card(page, 'p-2').getByText('Allowed by you').waitFor();
    expect(await top()).toBe(before);
    // Keys go on from there.
    await page.keyboard.press('j');
    await expect.poll(() => focused(page)).toBe('p-3');
    expect(hub.calls.filter(({ path }) => path.endsWith('/answer'))).toHaveLength(1);
  });

  test('are retried with the same key while the hub is unavailable', async () => {
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

  test('that come too late show who decided, and what', async () => {
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
    const outcomeShown = card(page, 'req-bash').locator('.outcome');
    await outcomeShown.getByText('Too late.').waitFor();
    expect(await outcomeShown.innerText()).toContain('Denied by Ben');
    expect(await outcomeShown.innerText()).toContain('Use the other script');
  });

  test('can be given on the session page, where each decision is shown at its tool call', async () => {
    const { page, hub } = await show(undefined, {}, SESSION);
    const settled = (id: number, requestId: string, toolUseId: string, decision: 'allow' | 'deny') =>
      event(id, 'permission_result', {
        kind: 'permission_result',
        ...{ requestId, toolUseId, toolName: 'Bash', decision, source: 'human' },
      });
    await button(page, 'req-bash', 'Allow').click();
    await expect.poll(() => card(page, 'req-bash').count()).toBe(0);
    const asked = hub.data.requests.find(({ requestId }) => requestId === 'req-edit')!;
    const outcome = { decision: 'deny' as const, by: 'Ben', source: 'human', at: ago(0), message: 'Not that file' };
    hub.overrides.set('POST requests/req-edit/answer', () => ({
      status: 409,
      json: { error: { code: 'PERMISSION_REQUEST_NOT_FOUND', message: 'Settled.' }, outcome },
    }));
    await button(page, 'req-edit', 'Allow').click();
    hub.publish('request', { ...asked, status: 'settled', mayAnswer: false, outcome });
    await expect.poll(() => card(page, 'req-edit').count()).toBe(0);
    for (const one of [
      settled(15, 'req-edit', 'tool4', 'deny'),
      calls(16, 'tool5', 'Bash', { command: 'npm test' }),
      settled(17, 'req-bash', 'tool5', 'allow'),
    ])
      hub.publish('event', { sessionId: SESSION_ID, ...one });
    await page.locator('.decided').getByText('Too late. Denied by Ben').waitFor();
    await page.locator('.decided').getByText('Allowed by you (Anna)').waitFor();
  });

  test.each([
    ['a desktop', { viewport: DESKTOP }],
    ['a phone', { viewport: PHONE }],
  ])('given by someone else stay on the request until it is cleared, and move nothing on %s', async (_, options) => {
    const { page, hub } = await show(undefined, options);
    await button(page, 'req-bash', 'Allow').waitFor();
    const before = await card(page, 'req-bash').boundingBox();
    const first = hub.data.requests[0]!;
    hub.publish('request', {
      ...first,
      status: 'settled',
      mayAnswer: false,
      outcome: { decision: 'allow', by: 'Ben', source: 'human', at: ago(0) },
    });
    await card(page, 'req-edit').getByText('Allowed by Ben').waitFor();
    hub.publish('request', request('req-new', first.sessionId, { createdAt: ago(0), input: { command: 'date' } }));
    await page.getByText('4 waiting').waitFor();
    const after = await card(page, 'req-bash').boundingBox();
    expect(after).toEqual(before);
    await page.getByRole('button', { name: 'Clear 1 answered' }).click();
    expect(await card(page, 'req-edit').count()).toBe(0);

    const [, second] = hub.data.requests;
    const outcome = { decision: 'deny' as const, by: 'Ben', source: 'human', at: ago(0) };
    hub.publish('request', { ...second!, status: 'settled', mayAnswer: false, outcome });
    const settled = card(page, second!.requestId);
    await settled.getByText('Denied by Ben').waitFor();
    // The person had been elsewhere, and comes back to the page.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await settled.waitFor({ state: 'detached' });
  });

  test('can choose an option of a question, allow a plan, or change the input of a command', async () => {
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

  test('to a request of the server’s own are Allow or Deny: it cannot be changed', async () => {
    const { page } = await show(({ requests }) => {
      const [first] = requests;
      const input = { mode: 'merge', commit: 'c0ffee', message: 'Round prices', diff: '+x' };
      const { alwaysAllows: _, ...own } = request('req-own', first?.sessionId ?? '', { toolName: 'Apply', input });
      requests.push({ ...own, asShown: true });
    });
    await button(page, 'req-own', 'Allow').waitFor();
    expect(await card(page, 'req-own').getByRole('button').allInnerTexts()).toEqual(['Allow', 'Deny']);
  });

  test('can be given by keyboard to the focused request, but not while typing', async () => {
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

  test('can be given to all requests of a session at once, when all of them have been on the screen', async () => {
    const { page, hub } = await show((data) => {
      data.requests = ['one', 'two', 'three'].flatMap((name, index) => [
        request(`r-${name}`, SESSION_ID, { input: { command: `make ${name}` }, createdAt: ago(300 - index) }),
        ...(index === 0 ? [request('r-other', data.sessions[1]!.sessionId, { createdAt: ago(299.5) })] : []),
      ]);
    }, LOW);
    // Those of one session stand together, below the oldest of them.
    await card(page, 'r-other').waitFor({ state: 'attached' });
    const order = await page.evaluate<string[]>(
      `[...document.querySelectorAll('[data-request]')].map((one) => one.dataset.request)`,
    );
    expect(order).toEqual(['r-one', 'r-two', 'r-three', 'r-other']);
    const all = page.getByRole('button', { name: 'Allow all 3' });
    expect(await all.isDisabled()).toBe(true);
    for (const name of ['one', 'two', 'three']) {
      for (const part of await card(page, `r-${name}`).locator('.part').all()) {
        await part.scrollIntoViewIfNeeded();
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      }
    }
    await all.click();
    await expect.poll(() => hub.calls.filter(({ path }) => path.endsWith('/answer')).length).toBe(3);
    expect(hub.data.requests.find(({ requestId }) => requestId === 'r-other')?.status).toBe('open');
  });

  test('can accept edits for the session, and a plan has three ways to go on', async () => {
    const { page, hub } = await show();
    const sent = (id: string) => hub.calls.find(({ path }) => path === `requests/${id}/answer`)?.body;
    await button(page, 'req-edit', 'Allow edits in this session').click();
    await card(page, 'req-edit').getByText('Allowed by you').waitFor();
    expect(sent('req-edit')).toEqual({ decision: 'allow', acceptEdits: true });
    await card(page, 'req-plan').scrollIntoViewIfNeeded();
    expect(await button(page, 'req-plan', 'Allow and accept edits').count()).toBe(1);
    expect(await button(page, 'req-plan', 'Allow').count()).toBe(1);
    await button(page, 'req-plan', 'Keep planning').click();
    await card(page, 'req-plan').getByText('Denied by you').waitFor();
    expect(sent('req-plan')).toMatchObject({ decision: 'deny' });
  });

  test('by keyboard lead to the next request, also one that is not rendered yet', async () => {
    const { page } = await show((data) => {
      data.requests = Array.from({ length: 40 }, (_, index) =>
        request(`k-${index}`, SESSION_ID, { input: { command: `make ${index}` }, createdAt: ago(500 - index) }),
      );
    });
    await card(page, 'k-0').waitFor();
    await page.keyboard.press('j');
    await expect.poll(() => focused(page)).toBe('k-0');
    await page.keyboard.press('a');
    await card(page, 'k-0').getByText('Allowed by you').waitFor();
    await expect.poll(() => focused(page)).toBe('k-1');
    for (let index = 2; index <= 20; index++) {
      await page.keyboard.press('j');
      await expect.poll(() => focused(page)).toBe(`k-${index}`);
    }
    await page.keyboard.press('m');
    await expect.poll(() => page.evaluate<string>('document.activeElement.tagName')).toBe('TEXTAREA');
    await page.keyboard.type('Not that one');
    await page.keyboard.press('Control+Enter');
    await card(page, 'k-20').getByText('Not that one').waitFor();
    // One after the other, before the page has been drawn.
    await page.evaluate(`(async () => {
      const field = () => document.querySelector('[role=combobox]');
      document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
      for (let turn = 0; turn < 100 && !field(); turn++) await Promise.resolve();
      field().value = 'french';
      field().dispatchEvent(new Event('input', { bubbles: true }));
      field().dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    })()`);
    await page.getByRole('heading', { name: 'Add French translations' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByLabel('Page, session or command').fill('rules');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Rules', exact: true }).waitFor();
  });

  test('leave the focus where a person goes on, and keys in the list that they are about', async () => {
    const { page, hub } = await show();
    await card(page, 'req-bash').focus();
    await page.keyboard.press('e');
    await expect.poll(() => focused(page)).toBe('textarea');
    await page.keyboard.press('Escape');
    await expect.poll(() => focused(page)).toBe('req-bash');
    await button(page, 'req-bash', 'Change…').click();
    await button(page, 'req-bash', 'Back').click();
    await expect.poll(() => focused(page)).toBe('req-bash');
    // The last one of the page: there is another one above it.
    for (const key of ['j', 'j']) await page.keyboard.press(key);
    await expect.poll(() => focused(page)).toBe('req-plan');
    await page.keyboard.press('d');
    await card(page, 'req-plan').getByText('Denied by you').waitFor();
    await expect.poll(() => focused(page)).toBe('req-question');

    // Two lists beside each other.
    await page.goto(hub.url + SESSION);
    await button(page, 'req-bash', 'Deny').waitFor();
    await page.locator('.session-row').first().focus();
    await page.keyboard.press('j');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toContain('Add French translations');
    await card(page, 'req-bash').focus();
    for (const key of ['j', 'd']) await page.keyboard.press(key);
    await expect.poll(() => focused(page)).toBe('req-edit');
    await page.keyboard.press('d');
    await card(page, 'req-edit').waitFor({ state: 'detached' });
    await expect.poll(() => focused(page)).toBe('main');
  });
}
