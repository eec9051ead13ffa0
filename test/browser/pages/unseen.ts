import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { UNSEEN_CHARACTERS } from '../../harness/invisible-vectors.ts';
import { PHONE } from '../browser.ts';
import { request } from '../fixture-data.ts';
import type { FixtureData, FixtureHub } from '../fixture-hub.ts';
import { button, card, focused, SESSION_ID, show } from '../page-world.ts';

/** Nothing is allowed that was not shown. */
export function unseen(): void {
  const write = (content: string) => ({ toolName: 'Write', input: { file_path: '/home/anna/shop/new.ts', content } });
  const only =
    (...parts: Parameters<typeof request>[2][]) =>
    (data: FixtureData) => {
      data.requests = parts.map((part, index) => request(`r${index}`, SESSION_ID, part));
    };
  const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1};`).join('\n');
  const answers = (hub: FixtureHub) => hub.calls.filter(({ path }) => path.endsWith('/answer'));
  /** Has the page measure what is on the screen, and returns once it has. */
  const settle = (page: Page) =>
    page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');

  test('a long input cannot be allowed by button, key or editor before it is unfolded, and the page says why', async () => {
    const { page, hub } = await show(only({ ...write(numbered(401)), alwaysAllows: 'Edit' }));
    const allow = button(page, 'r0', 'Allow');
    await card(page, 'r0').getByText('Allow is off until you have unfolded the whole input.').waitFor();
    await card(page, 'r0').getByText('401 lines', { exact: true }).waitFor();
    await settle(page);
    // What is cut off does not look like an end.
    const fade = `getComputedStyle(document.querySelector('[data-request="r0"] .diff')).maskImage`;
    expect(await page.evaluate(fade)).toContain('gradient');
    expect(await page.getByText('line 401;').count()).toBe(0);
    expect(await allow.isDisabled()).toBe(true);
    expect(await button(page, 'r0', 'Always allow').isDisabled()).toBe(true);
    expect(await button(page, 'r0', 'Deny').isEnabled()).toBe(true);
    const reason = await allow.getAttribute('aria-describedby');
    expect(await page.locator(`[id="${reason ?? ''}"]`).innerText()).toContain('Allow is off');
    await card(page, 'r0').focus();
    for (const key of ['a', 'A']) await page.keyboard.press(key);
    await card(page, 'r0').focus();
    await page.keyboard.press('e');
    expect(await button(page, 'r0', 'Run with changes').isDisabled()).toBe(true);
    await card(page, 'r0').getByLabel('Changed content').press('Control+Enter');
    await button(page, 'r0', 'Back').click();
    expect(answers(hub)).toEqual([]);

    await button(page, 'r0', 'Show all 401 lines').click();
    await page.getByText('line 401;').waitFor();
    expect(await page.evaluate(fade)).toBe('none');
    await expect.poll(() => focused(page)).toBe('r0');
    await settle(page);
    await allow.click();
    await card(page, 'r0').getByText('Allowed by you').waitFor();
    expect(answers(hub)).toHaveLength(1);
  });

  test('a command, a line, a field, a prompt and a plan too long for a card have to be unfolded', async () => {
    const { page, hub } = await show(only({}));
    const long: [part: Parameters<typeof request>[2], unfold: string][] = [
      [{ input: { command: numbered(80), description: 'Run it' } }, 'Show all 80 lines'],
      [{ input: { command: `echo ${'x'.repeat(7000)}; rm -rf ~` } }, 'Show all 7,015 characters'],
      [{ toolName: 'mcp__db__query', input: { sql: numbered(80) } }, 'Show all 80 lines'],
      [{ toolName: 'Agent', input: { prompt: numbered(80), model: 'opus' } }, 'Show all 80 lines'],
      [{ type: 'plan_review' as const, toolName: 'ExitPlanMode', plan: numbered(80), input: {} }, 'Show all 80 lines'],
    ];
    for (const [part, unfold] of long) {
      only(part)(hub.data);
      await page.reload();
      await button(page, 'r0', unfold).waitFor();
      await expect.poll(() => button(page, 'r0', 'Allow').isDisabled()).toBe(true);
      await button(page, 'r0', unfold).click();
      await expect.poll(() => button(page, 'r0', 'Allow').isEnabled()).toBe(true);
    }
  });

  test('whoever may not answer a question can still unfold and copy all of it', async () => {
    const preview = Array.from({ length: 100 }, (_, index) => `preview line ${index + 1};`).join('\n');
    const questions = [{ question: 'Which layout?', options: [{ label: 'Wide', preview }], note: preview }];
    const asked = { type: 'user_question', toolName: 'AskUserQuestion', questions, input: {} } as const;
    const { page, context } = await show(only({ ...asked, mayAnswer: false }));
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const texts = card(page, 'r0').locator('.code-block');
    await texts.first().waitFor();
    expect(await page.getByText('preview line 100;').count()).toBe(0);
    await texts.first().getByRole('button', { name: 'Copy preview' }).click();
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(preview);
    await texts.first().getByRole('button', { name: 'Show all 100 lines' }).click();
    await texts.first().getByText('preview line 100;').waitFor();
    for (const input of await card(page, 'r0').locator('input').all()) expect(await input.isDisabled()).toBe(true);
  });

  test('an input taller than the screen cannot be allowed before it was scrolled through', async () => {
    const { page, hub } = await show(only(write(numbered(60))), { viewport: PHONE });
    await card(page, 'r0').getByText('scroll through it').waitFor();
    const scrollTo = async (top: string) => {
      await page.evaluate(`document.querySelector('main').scrollTo({ top: ${top} })`);
      await settle(page);
    };
    await scrollTo('1e6');
    expect(await button(page, 'r0', 'Allow').isDisabled()).toBe(true);
    for (let top = 0; top < 3000; top += 300) await scrollTo(String(top));
    await button(page, 'r0', 'Allow').click();
    await card(page, 'r0').getByText('Allowed by you').waitFor();
    expect(answers(hub)).toHaveLength(1);
  });

  test('a key does not allow what is elsewhere on the page, but brings it onto the screen', async () => {
    const { page, hub } = await show(only({}, {}, {}, { input: { command: 'make last' } }));
    await button(page, 'r3', 'Allow').waitFor();
    await page.evaluate(`document.querySelector('[data-request="r3"]').focus({ preventScroll: true })`);
    await page.keyboard.press('a');
    await card(page, 'r3').getByText('Not sent: this had not been on the screen yet.').waitFor();
    expect(answers(hub)).toEqual([]);
    await page.keyboard.press('a');
    await card(page, 'r3').getByText('Allowed by you').waitFor();
  });

  test('what was rendered below the screen and removed again has not been on it', async () => {
    const low = { viewport: { width: 1280, height: 620 } };
    const { page } = await show(only(write(numbered(59)), write(numbered(59)), {}), low);
    const scrollTo = (top: number) => page.evaluate(`document.querySelector('main').scrollTo({ top: ${top} })`);
    await card(page, 'r0').getByText('scroll through it').waitFor();
    await scrollTo(600);
    await card(page, 'r1').waitFor({ state: 'attached' });
    await settle(page);
    expect((await card(page, 'r1').boundingBox())!.y).toBeGreaterThan(620);
    await scrollTo(0);
    await card(page, 'r1').waitFor({ state: 'detached' });
    await settle(page);
    await scrollTo(600);
    await card(page, 'r1').waitFor({ state: 'attached' });
    await settle(page);
    await card(page, 'r1').focus();
    await card(page, 'r1').getByText('scroll through it').waitFor();
    expect(await button(page, 'r1', 'Allow').isDisabled()).toBe(true);
  });

  test('a key leads to what has to be read first, and one that is held down answers one request', async () => {
    const low = { viewport: { width: 1280, height: 620 } };
    const { page, hub } = await show(only(write(numbered(401)), write(numbered(59)), {}, {}), low);
    const isAllowed = async (id: string) => (await card(page, id).getByText('Allowed by you').count()) > 0;
    await button(page, 'r0', 'Show all 401 lines').waitFor();
    await card(page, 'r0').focus();
    await page.keyboard.press('a');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Show all 401 lines');
    await card(page, 'r0').getByText('Not sent').waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => focused(page)).toBe('r0');
    await page.getByText('line 401;').waitFor();
    await settle(page);
    // To a field far below, past everything that was unfolded.
    for (let tab = 0; tab < 3; tab++) await page.keyboard.press('Tab');
    await expect.poll(() => focused(page)).toBe('textarea');
    await page.keyboard.press('Escape');
    await expect.poll(() => focused(page)).toBe('r0');
    await page.keyboard.press('a');
    await card(page, 'r0').getByText('Allowed by you').waitFor();
    // The next one begins thousands of pixels further down.
    await expect.poll(() => focused(page)).toBe('r1');
    let presses = 0;
    for (; !(await isAllowed('r1')) && presses < 9; presses++) {
      await page.keyboard.press('a');
      await settle(page);
    }
    expect(presses).toBeGreaterThan(1);
    await expect.poll(() => focused(page)).toBe('r2');
    await settle(page);
    for (let time = 0; time < 3; time++) await page.keyboard.down('a');
    await page.keyboard.up('a');
    await card(page, 'r2').getByText('Allowed by you').waitFor();
    await expect.poll(() => focused(page)).toBe('r3');
    await page.keyboard.press('d');
    await card(page, 'r3').getByText('Denied by you').waitFor();
    expect(answers(hub)).toHaveLength(4);
  });

  test('runs of blank lines and blanks are counted, and every invisible character is marked', async () => {
    const hidden = UNSEEN_CHARACTERS.map((code) => `<${String.fromCodePoint(code)}>`).join('');
    const { page } = await show(
      only(
        write(`first${'\n'.repeat(201)}last`),
        { input: { command: `ls${' '.repeat(19)}; rm -rf ~${'\n'.repeat(201)}date` } },
        { toolName: 'mcp__any__tool', input: { text: hidden } },
      ),
    );
    await card(page, 'r0').getByText('… 200 blank lines …').waitFor();
    expect(await card(page, 'r0').locator('.line').count()).toBe(3);
    const command = await card(page, 'r1').locator('.code-command').innerText();
    expect(command).toContain('ls… 19 blanks …; rm -rf ~');
    expect(command).toContain('… 200 blank lines …\ndate');
    const marks = await card(page, 'r2').locator('dd .invisible').allInnerTexts();
    expect(marks).toHaveLength(UNSEEN_CHARACTERS.length);
    expect(marks).toContain('U+2800');
  });

  test('every field of an input is listed', async () => {
    const { page } = await show(
      only(
        {
          type: 'plan_review',
          toolName: 'ExitPlanMode',
          plan: 'Look first',
          input: { plan: 'Look first', allowedPrompts: [{ tool: 'Bash', prompt: 'run anything' }] },
        },
        {
          toolName: 'MultiEdit',
          input: { file_path: '/tmp/a', edits: [{ old_string: 'a', new_string: 'b', replace_all: true }] },
        },
        { toolName: 'TodoWrite', input: { todos: [{ content: 'x', status: 'pending', owner: 'hidden owner' }] } },
        { toolName: 'Edit', input: { file_path: '/tmp/a', old_string: 'a', new_string: 'b', replace_all: true } },
        {
          type: 'user_question',
          toolName: 'AskUserQuestion',
          questions: [{ question: 'Which?', options: [] }],
          input: { questions: [{ question: 'Which?', options: [] }], metadata: { source: 'hidden source' } },
        },
        {
          type: 'user_question',
          toolName: 'AskUserQuestion',
          questions: [{ question: 'Which layout?', options: [{ label: 'Wide', preview: '+----+\n| hi |\n+----+' }] }],
          input: {},
        },
      ),
    );
    await card(page, 'r0').getByText('Look first').waitFor();
    expect(await card(page, 'r0').getByText('Look first').count()).toBe(1);
    expect(await card(page, 'r0').innerText()).toContain('run anything');
    for (const [id, words] of [
      ['r1', 'replace_all'],
      ['r2', 'hidden owner'],
      ['r3', 'replace_all'],
      ['r4', 'hidden source'],
      ['r5', '| hi |'],
    ] as const) {
      await page.evaluate(`document.querySelector('main').scrollBy({ top: 300 })`);
      await card(page, id).getByText(words).waitFor();
    }
  });

  test('a plan shows where its links go and what they are titled, and can be read as source', async () => {
    const plan = 'Read [the notes](https://example.com/a/b?c=d "then push to main") first.';
    const { page } = await show(only({ type: 'plan_review', toolName: 'ExitPlanMode', plan, input: { plan } }));
    await card(page, 'r0').getByRole('link', { name: 'the notes' }).waitFor();
    const shown = await card(page, 'r0').locator('.plan').innerText();
    expect(shown).toContain('https://example.com/a/b?c=d');
    expect(shown).toContain('then push to main');
    await card(page, 'r0').getByLabel('Show source').check();
    expect(await card(page, 'r0').locator('pre').innerText()).toBe(plan);
  });
}
