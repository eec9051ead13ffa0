import { expect, test } from 'vitest';
import type { ApiEvent } from '../../../src/schema/api.ts';
import { calls, event, request, says } from '../fixture-data.ts';
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
      ...{ requestId, toolUseId, toolName, decision: 'allow', source: 'human' },
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
    expect(await page.locator('.tool-running').count()).toBe(0);
    expect(await page.locator('.row.prompt').allInnerTexts()).toEqual([expect.stringContaining('And hurry.')]);
    await page.getByText('The hub told Claude what was decided').click();
    await page.getByText('Your process was stopped.').waitFor();
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByText('Claude was asked to make the call again.').waitFor();
    const sent = hub.calls.find(({ path }) => path.endsWith('/messages'))?.body as { prompt: string };
    expect(sent.prompt).toContain('"command": "npm publish"');
  });

  test('a request names the sub-agent that asks, and a path is outside only if it is', async () => {
    const { page } = await show((data) => {
      const inside = { blockedPath: '/home/anna/shop/src/price.ts' };
      data.requests = [
        request('r-inside', SESSION_ID, { ...inside, agentID: 'a1', agent: 'Find every place that rounds' }),
        request('r-outside', SESSION_ID, { blockedPath: '/etc/hosts' }),
      ];
    });
    await card(page, 'r-inside').getByText('Asked by a sub-agent: Find every place that rounds').waitFor();
    await card(page, 'r-outside').getByText('Outside the working directory').waitFor();
    expect(await card(page, 'r-inside').getByText('Outside the working directory').count()).toBe(0);
  });
}
