import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { ModelsAnswer } from '../../../src/schema/api.ts';
import { text, tool } from '../../../src/scripted-model/reply.ts';
import { cardOf, clickButton, waitForState, type JourneyWorld } from '../journey-world.ts';

/** Each of these would be a lie if it were shown otherwise. */
export function truth(world: JourneyWorld): void {
  test('what ran, who allowed it, how a question was answered and what it cost, on the timeline and in the audit', async () => {
    const { hub } = world;
    hub.model.on('Print a word').reply(
      tool('Bash', { command: 'touch asked', description: 'Print it' }),
      tool('AskUserQuestion', {
        questions: [
          {
            question: 'Which colour?',
            header: 'Colour',
            multiSelect: false,
            options: [
              { label: 'red', description: 'Warm' },
              { label: 'blue', description: 'Cold' },
            ],
          },
        ],
      }),
      text('Printed it.'),
    );
    const page = await world.openSignedIn({ token: await hub.token('Clara', 'approver') });
    const session = await hub.startSession({ prompt: 'Print a word', title: 'Printing' });
    await cardOf(page, 'Printing').getByText('touch asked').first().waitFor();
    // Nothing has been reported yet: a dash, not "$0".
    await page.getByRole('link', { name: 'Sessions' }).click();
    const row = page.locator('.session-row', { hasText: 'Printing' });
    expect(await row.locator('.row-numbers').innerText()).toMatch(/^—/);
    await page.getByRole('link', { name: 'Inbox' }).click();
    await clickButton(page, 'Printing', 'Change…');
    await cardOf(page, 'Printing').getByLabel('Changed command').fill('echo changed');
    await cardOf(page, 'Printing').getByRole('button', { name: 'Run with changes' }).click();
    await page.getByLabel('blue').check();
    await page.getByRole('button', { name: 'Answer', exact: true }).click();

    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await page.getByText('Printed it.').waitFor();
    await waitForState(page, 'Idle');
    expect(await page.title()).toContain('Printing');
    const bash = page.locator('.row.tool', { hasText: 'Bash' });
    await bash.locator('summary').first().click();
    expect(await bash.locator('.code-command').first().innerText()).toContain('echo changed');
    expect(await bash.locator('.code-output').innerText()).toContain('changed');
    await bash.getByText('What Claude had asked for').click();
    expect(await bash.locator('.code-command').last().innerText()).toContain('touch asked');
    await page.locator('.given-answer', { hasText: 'Which colour?' }).getByText('blue').waitFor();
    await page.reload();
    await page.locator('.given-answer', { hasText: 'Which colour?' }).getByText('blue').waitFor();
    expect(await page.locator('.session-facts').innerText()).toMatch(/\$\d|< \$0\.01/);

    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('Person').fill('clara');
    await page.getByLabel('Tool').fill('Bash');
    await page.getByLabel('Decision').selectOption('allow');
    await page.getByLabel('Search').fill('touch asked');
    const decided = page.locator('.audit-row', { hasText: 'touch asked' });
    await expect.poll(() => page.locator('.audit-row').count()).toBe(1);
    expect(await decided.locator('.audit-what').innerText()).toBe('Bash touch asked → allow by Clara');
    // The address has the filters: a reload keeps them.
    await page.reload();
    await decided.waitFor();
    expect(await page.locator('.audit-row').count()).toBe(1);
    await page.getByLabel('Decision').selectOption('deny');
    await page.getByText('Nothing recorded').waitFor();
    const audited = await hub.command('audit', '--person', 'clara', '--tool', 'Bash', '--json');
    expect(JSON.parse(audited)).toMatchObject({ kind: 'decision', name: 'Clara', what: 'Bash', outcome: 'allow' });
  });

  test('an image that Claude read is on the timeline, and a new session offers the models of Claude Code', async () => {
    const { hub } = world;
    const pixels =
      'iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAQ0lEQVR42u3PQQkAAAgEsItjCPtjLCv4FQYrsEzXaxEQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQuFoOKBDTXECg5QAAAABJRU5ErkJggg==';
    await writeFile(world.file('plot.png'), Buffer.from(pixels, 'base64'));
    hub.model.on('Look at the plot').reply(tool('Read', { file_path: world.file('plot.png') }), text('I see it.'));
    const page = await world.openSignedIn();
    const { sessionId } = await hub.startSession({ prompt: 'Look at the plot', title: 'Plot' });
    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    const image = page.getByRole('img', { name: 'Image 1 that Claude saw' });
    await image.waitFor();
    await expect
      .poll(() => image.evaluate((shown) => (shown as unknown as { naturalWidth: number }).naturalWidth))
      .toBeGreaterThan(0);
    await page.getByRole('button', { name: 'Show the image larger' }).click();
    await page.getByRole('button', { name: 'Show the image smaller' }).waitFor();

    const { models } = await hub.api<ModelsAnswer>('GET', 'models');
    expect(models.map(({ value }) => value)).toContain('default');
    await page.getByRole('button', { name: 'New session' }).click();
    await expect
      .poll(() => page.evaluate(`[...document.querySelectorAll('#models option')].map(({ value }) => value)`))
      .toEqual(expect.arrayContaining(models.map(({ value }) => value)));
  });

  test('sign-ins are shown with their device and their last use, and the costs add up', async () => {
    const { hub } = world;
    const page = await world.openSignedIn({ token: await hub.token('Dora', 'admin') });
    await page.getByRole('link', { name: 'Tokens' }).click();
    const own = page.getByRole('region', { name: 'Sign-ins' }).locator('li', { hasText: 'this one' });
    expect(await own.innerText()).toMatch(/Dora · Chrome on Linux[^]*last used just now/);
    const costs = await hub.api<{ totalUsd: number; days: { costUsd: number }[] }>(
      'GET',
      'costs',
      undefined,
      hub.admin,
    );
    expect(costs.totalUsd).toBeGreaterThan(0);
    expect(costs.days.reduce((sum, { costUsd }) => sum + costUsd, 0)).toBeCloseTo(costs.totalUsd, 4);
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByRole('link', { name: 'Costs' }).click();
    await page.getByRole('table', { name: 'By owner' }).getByText('editor').waitFor();
    await page.getByRole('table', { name: 'By project' }).waitFor();
    await page.getByRole('table', { name: 'By day' }).waitFor();
  });
}
