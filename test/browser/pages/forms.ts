import { expect, test } from 'vitest';
import { says } from '../fixture-data.ts';
import { AT_REST, focused, SESSION, SESSION_ID, show } from '../page-world.ts';

export function forms(): void {
  test('a new session offers recent directories, a browser for others, and the modes that are permitted', async () => {
    const { page, hub } = await show(undefined, {}, '#/new');
    await page.getByRole('button', { name: 'shop' }).click();
    expect(await page.getByLabel('Directory', { exact: true }).inputValue()).toBe('/home/anna/shop');
    await page.getByLabel('Directory', { exact: true }).fill('');
    await page.getByRole('button', { name: 'Browse…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a directory' });
    await dialog.getByRole('button', { name: 'docs' }).click();
    await dialog.getByText('~/docs').waitFor();
    await dialog.getByRole('button', { name: 'Use this directory' }).click();
    expect(await page.getByLabel('Directory', { exact: true }).inputValue()).toBe('/home/anna/docs');
    const modes = await page.getByLabel('Permission mode').locator('option').allInnerTexts();
    expect(modes.map((mode) => mode.split(':')[0])).toEqual(['default', 'acceptEdits', 'plan']);
    await page.getByLabel('Prompt').fill('Write the docs');
    await page.getByLabel('Directory', { exact: true }).fill('~/docs');
    let answer = (): void => undefined;
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/api/v1/sessions', async (route) => {
      await isAnswered;
      await route.continue();
    });
    const error = { code: 'INVALID_ARGUMENT', message: 'No such directory.' };
    hub.overrides.set('POST sessions', () => ({ status: 400, json: { error } }));
    await page.getByRole('button', { name: 'Start session' }).click();
    await page.getByText('Starting Claude Code…').waitFor();
    answer();
    await page.getByText('No such directory.').waitFor();
    const started = hub.calls.find(({ method, path }) => method === 'POST' && path === 'sessions');
    expect(started?.body).toMatchObject({ prompt: 'Write the docs', cwd: '~/docs' });
  });

  test('whatever the list is filtered by, all sessions can be gone to and recent directories are offered', async () => {
    const { page, hub } = await show(undefined, {}, '#/sessions?search=upgrade');
    await page.getByText('Upgrade the build').waitFor();
    expect(await page.locator('.session-row').count()).toBe(1);
    await page.keyboard.press('Control+k');
    await page.getByLabel('Page, session or command').fill('french');
    await page.getByRole('option', { name: 'Add French translations' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Add French translations' }).waitFor();
    // It was there while the session was loaded, and still is.
    await expect.poll(() => focused(page)).toBe('main');
    await page.goto(`${hub.url}#/sessions?search=upgrade`);
    await page.reload();
    await page.getByText('Upgrade the build').waitFor();
    await page.keyboard.press('n');
    await page.getByRole('button', { name: 'shop', exact: true }).waitFor();
  });

  test('a phone is signed in with a code that is shown once, and a session gets another title', async () => {
    const { page, hub } = await show(undefined, {}, '#/tokens');
    await page.getByRole('button', { name: 'Sign in on a phone' }).click();
    const dialog = page.getByRole('dialog', { name: 'Sign in on a phone' });
    await dialog.getByRole('img', { name: 'Sign-in link as a QR code' }).waitFor();
    await dialog.getByLabel('Stay signed in for 30 days').check();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.goto(`${hub.url}#code=another&stay`);
    await expect
      .poll(() => hub.calls.findLast(({ path }) => path === 'sign-in')?.body)
      .toEqual({ code: 'another', stay: true });
    await page.goto(`${hub.url}${SESSION}/details`);
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Title').fill('Prices in cents');
    await page.getByRole('button', { name: 'Save title' }).click();
    await expect
      .poll(() => hub.calls.find(({ path }) => path.endsWith('/rename'))?.body)
      .toEqual({
        title: 'Prices in cents',
      });
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Rename');
  });

  test('comments on lines of a diff become one message, and code has colours', async () => {
    const { page, hub } = await show(undefined, {}, `${AT_REST}/work`);
    await page.locator('.token-keyword').first().waitFor();
    const onLine = (line: number) => page.getByRole('button', { name: `Comment on line ${line}` }).first();
    await onLine(3).focus();
    for (const words of ['Not so', 'Round half to even']) {
      await page.keyboard.press('Enter');
      await page.getByLabel('Comment on src/price.ts:3').waitFor();
      await page.keyboard.type(words);
      await page.keyboard.press('Control+Enter');
      // It stands below its line, from where one goes on.
      await page.locator('.line.added:has-text("Math.round") + .comment').waitFor();
      await expect.poll(() => onLine(3).evaluate((line) => line.matches(':focus'))).toBe(true);
    }
    await page.locator('.comment', { hasText: 'Not so' }).getByRole('button', { name: 'Remove comment' }).click();
    await page.getByText('1 comment', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send to Claude' }).click();
    await expect
      .poll(() => (hub.calls.find(({ path }) => path.endsWith('/messages'))?.body as { prompt?: string })?.prompt)
      .toBe('Comments on your changes:\n- src/price.ts:3 (return Math.round(cents) / 100;)\n  Round half to even');
  });

  test('code in a text has colours and its language, and everything can be copied as it is', async () => {
    const code = 'const total = 1; // in cents\u200b';
    const said = `Like this:\n\n\`\`\`ts\n${code}\n\`\`\`\n\n\`\`\`text\nconst is no code here\n\`\`\`\n`;
    const { page, context } = await show(
      (data) => {
        data.requests = [];
        data.events[SESSION_ID] = [says(1, said)];
      },
      {},
      SESSION,
    );
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    const typed = page.locator('.code-block').filter({ hasText: 'total' });
    const plain = page.locator('.code-block').filter({ hasText: 'no code' });
    await typed.locator('.token-keyword').getByText('const').waitFor();
    await typed.locator('.token-comment').waitFor();
    expect(await plain.locator('.token-keyword').count()).toBe(0);
    await typed.getByRole('button', { name: 'Copy code' }).click();
    await typed.getByText('Copied').waitFor();
    // What cannot be seen is marked on the page, and not in what is copied.
    expect(await copied()).toBe(code);
    await page.getByRole('button', { name: 'Copy this text' }).click();
    await expect.poll(copied).toBe(said);
  });
}
