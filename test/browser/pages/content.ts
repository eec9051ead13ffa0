import { expect, test } from 'vitest';
import { ago, calls, event, request, returns, says } from '../fixture-data.ts';
import { card, SESSION, SESSION_ID, show } from '../page-world.ts';

export function content(): void {
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

  test('from sessions, files, tools and people is shown as text, never run or fetched', async () => {
    const id = SESSION_ID;
    const { page, hub, hosts, errors } = await show((data) => {
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
    expect(errors).toEqual([]);
  });
}
