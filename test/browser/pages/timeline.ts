import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import type { ApiEvent } from '../../../src/schema/api-events.ts';
import { calls, event, request, returns, says } from '../fixture-data.ts';
import { card, SESSION, SESSION_ID, show } from '../page-world.ts';

/** A permission that was asked for and given. */
function allowed(id: number, toolUseId: string, toolName: string, input: Record<string, unknown>): ApiEvent[] {
  const requestId = `r-${toolUseId}`;
  const ask = { requestId, toolUseId, toolName, input, onceOnly: false };
  return [
    event(id, 'permission_request', {
      kind: 'permission_request',
      request: { id: requestId, kind: 'permission', ask, createdAt: 0 },
    }),
    event(id + 1, 'permission_result', {
      kind: 'permission_result',
      ...{ requestId, toolUseId, toolName, decision: 'allow', source: 'human', detached: true },
    }),
  ];
}

export function timeline(): void {
  test('a call that was allowed but never made says so, and can be asked for again', async () => {
    const input = { command: 'npm publish' };
    const { page, hub } = await show(
      (data) => {
        Object.assign(data.sessions[0]!, { status: 'idle', state: 'idle' });
        data.requests = [];
        data.events[SESSION_ID] = [
          calls(1, 't1', 'Bash', input),
          ...allowed(2, 't1', 'Bash', input),
          event(4, 'progress', {
            kind: 'prompt',
            messageId: 'm',
            text: 'Your process was stopped. Bash was allowed.\n\nAnd hurry.',
            preamble: 45,
          }),
          event(5, 'output', {
            kind: 'message',
            role: 'user',
            blocks: [{ kind: 'text', text: '[Request interrupted by user]' }],
          }),
          calls(6, 't2', 'Read', { file_path: '/home/anna/shop/a.ts' }),
          says(7, 'I did something else.'),
        ];
      },
      {},
      SESSION,
    );
    await page.getByText('Allowed, but not carried out.').waitFor();
    // Cut at its front where there is no room.
    await page.locator('.tool-summary bdo[dir=rtl]').getByText('a.ts', { exact: true }).waitFor();
    expect(await page.locator('.tool-running').count()).toBe(0);
    expect(await page.locator('.row.prompt').allInnerTexts()).toEqual([expect.stringContaining('And hurry.')]);
    await page.getByText('The hub told Claude what was decided').click();
    await page.getByText('Your process was stopped.').waitFor();
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByText('Claude was asked to make the call again.').waitFor();
    const sent = hub.calls.find(({ path }) => path.endsWith('/messages'))?.body as { prompt: string };
    expect(sent.prompt).toContain('"command": "npm publish"');
  });

  test('what runs in the background of a session at rest is said, and its call is not shown as over in an instant', async () => {
    const { page, hub } = await show(
      (data) => {
        Object.assign(data.sessions[0]!, {
          status: 'idle',
          state: 'idle',
          activity: '1 tool (1 Bash)',
          backgroundTasks: 1,
        });
        data.requests = [];
        data.events[SESSION_ID] = [
          calls(1, 't1', 'Bash', { command: 'npm run dev', run_in_background: true }),
          returns(2, 't1', 'Command running in background'),
        ];
      },
      {},
      SESSION,
    );
    await page.locator('.row.tool', { hasText: 'started in the background' }).waitFor();
    await page.locator('.activity').getByText('1 tool (1 Bash) · 1 background task running').waitFor();
    await page.goto(`${hub.url}#/sessions`);
    await page.locator('.session-row').getByText('1 background task running').waitFor();
  });

  test('a request names the sub-agent that asks, and a path is outside only if it is', async () => {
    const { page } = await show((data) => {
      const inside = { blockedPath: '/home/anna/shop/src/price.ts' };
      data.requests = [
        request('r-inside', SESSION_ID, {
          ...inside,
          said: 'Once: ```ts round(`cents`)``` now',
          agentID: 'a1',
          agent: 'Find every place that rounds',
        }),
        request('r-outside', SESSION_ID, { blockedPath: '/etc/hosts' }),
      ];
    });
    await card(page, 'r-inside').getByText('Asked by a sub-agent: Find every place that rounds').waitFor();
    // It is told in one line, in which no block begins.
    await expect.poll(() => card(page, 'r-inside').locator('.said').innerText()).toBe('Once: round(cents) now');
    await card(page, 'r-outside').getByText('Outside the working directory').waitFor();
    expect(await card(page, 'r-inside').getByText('Outside the working directory').count()).toBe(0);
  });

  test('a long session can be read from its start, by its outline, by search, and by keys', async () => {
    const { page, hub } = await show(
      (data) => {
        data.requests = [];
        data.events[SESSION_ID] = Array.from({ length: 2500 }, (_, index) =>
          index % 500 === 0
            ? event(index + 1, 'progress', {
                kind: 'prompt',
                messageId: `m${index}`,
                text: `Chapter ${index / 500 + 1}`,
              })
            : says(
                index + 1,
                // Rows are of very different heights, which are not known before they are rendered.
                index === 700
                  ? 'Here is the needle.'
                  : `Line number ${index + 1}${index % 3 ? '' : '\n\n- and so on'.repeat(9)}`,
              ),
        );
      },
      {},
      SESSION,
    );
    const line = (text: string) => page.locator('.timeline').getByText(text, { exact: true });
    await line('Line number 2500').waitFor();
    const top = () => page.evaluate<number>(`document.querySelector('.timeline').scrollTop`);
    /** How far below the upper edge a row stands, once nothing moves any more. */
    const below = async (row: Locator): Promise<number> => {
      const measured = async () => (await row.boundingBox())!.y - (await page.locator('.timeline').boundingBox())!.y;
      for (let before = NaN; ;) {
        const now = await measured();
        if (now === before) return now;
        before = now;
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      }
    };
    await page.getByRole('button', { name: 'Start' }).click();
    await line('Chapter 1').waitFor();
    await expect.poll(top).toBe(0);
    await page.getByRole('button', { name: 'Latest' }).click();
    await line('Line number 2500').waitFor();
    await page.getByRole('button', { name: 'Outline' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Chapter 3' }).click();
    await line('Chapter 3').waitFor();
    expect(await below(page.locator('.row.prompt', { hasText: 'Chapter 3' }))).toBeCloseTo(12, -1);
    await page.getByLabel('Search in this session').fill('needle');
    await page.getByText('1 match', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await line('Here is the needle.').waitFor();
    expect(await page.locator('.marked').innerText()).toContain('Here is the needle.');
    expect(await below(page.locator('.marked'))).toBeCloseTo(12, -1);
    // Keys that a browser would use for the page are for the timeline, once no field has the focus.
    await page.keyboard.press('Escape');
    await page.keyboard.press('End');
    await line('Line number 2500').waitFor();
    await page.keyboard.press('PageUp');
    await page.getByRole('button', { name: 'Latest' }).waitFor();
    const seen = await top();
    // Back finds the place again; a new visit begins at the end.
    await page.goto(`${hub.url}#/sessions`);
    await page.getByText('Upgrade the build').waitFor();
    // On a busy machine a frame is late.
    await page.evaluate(`{
      const soon = requestAnimationFrame;
      requestAnimationFrame = (callback) => setTimeout(() => soon(callback), 300);
    }`);
    await page.goBack();
    await page.getByRole('button', { name: 'Latest' }).waitFor();
    await expect.poll(async () => Math.abs((await top()) - seen)).toBeLessThan(80);
    await page.keyboard.press('Home');
    await line('Chapter 1').waitFor();
  });

  test('text arrives piece by piece and is replaced by its message; a silence is told', async () => {
    const { page, hub } = await show(
      (data) => {
        data.requests = [];
        Object.assign(data.sessions[0]!, { status: 'running', state: 'running' });
      },
      {},
      SESSION,
    );
    await page.getByText('Only the invoice rounds.').waitFor();
    const piece = (at: number, text: string, quietMs = 0) =>
      hub.publish('writing', { sessionId: SESSION_ID, at, text, workedMs: 65_000, quietMs });
    piece(0, 'I am wri');
    await page.getByText('I am wri', { exact: true }).waitFor();
    piece(8, 'ting this.');
    await page.getByText('I am writing this.').waitFor();
    // Where the next word will stand.
    expect(await page.locator('.cursor').isVisible()).toBe(false);
    const cursor = `getComputedStyle(document.querySelector('.text:has(> .cursor) p:last-child'), '::after').width`;
    expect(await page.evaluate(cursor)).toBe('8px');
    await page.getByText(/1 min \d+ s/).waitFor();
    hub.publish('event', { sessionId: SESSION_ID, ...says(15, 'I am writing this.') });
    await page.locator('.cursor').waitFor({ state: 'detached' });
    expect(await page.getByText('I am writing this.').count()).toBe(1);
    piece(0, '', 41_000);
    await page.getByText(/quiet for 4\d s/).waitFor();
  });
}
