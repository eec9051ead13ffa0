import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { ApiSession, ModelsAnswer } from '../../../src/schema/api.ts';
import type { AuditPage } from '../../../src/schema/api-admin.ts';
import { text, tool } from '../../../src/scripted-model/reply.ts';
import { eventually } from '../../harness/eventually.ts';
import { cardOf, clickButton, waitForState, type JourneyWorld } from '../journey-world.ts';
import { signInWith } from '../page-steps.ts';
import { RealHub } from '../real-hub.ts';

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
    expect(await decided.locator('.audit-what').innerText()).toBe(
      'Bash touch asked, changed to: echo changed → allow by Clara',
    );
    // The address has the filters: a reload keeps them.
    await page.reload();
    await decided.waitFor();
    expect(await page.locator('.audit-row').count()).toBe(1);
    await page.getByLabel('Decision').selectOption('deny');
    await page.getByText('Nothing recorded').waitFor();
    const audited = await hub.command('audit', '--person', 'clara', '--tool', 'Bash', '--json');
    const decision = {
      kind: 'decision',
      name: 'Clara',
      what: 'Bash',
      target: 'touch asked, changed to: echo changed',
      outcome: 'allow',
    };
    expect(JSON.parse(audited)).toMatchObject(decision);
    const found = await hub.command('audit', '--search', 'touch asked', '--decision', 'allow');
    expect(found).toMatch(/Clara +decision +Bash touch asked, changed to: echo changed +allow/);
    expect(await hub.command('audit', '--person', 'editor', '--kind', 'decision', '--json')).toBe('');
    // The approver stopped it, not its owner.
    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await page.getByRole('button', { name: 'Cancel session' }).click();
    await page.getByRole('button', { name: 'Yes, cancel it' }).click();
    await waitForState(page, 'Cancelled');
    await page.goto(`${hub.url}#/audit?session=${session.sessionId}&kind=end`);
    expect(await page.locator('.audit-row', { hasText: 'cancelled' }).locator('.audit-what').innerText()).toBe(
      'cancelled',
    );
  });

  test('what is decided after the process was given back: a call runs once, as it was changed, or is said not to have run', async () => {
    const hub = await RealHub.open({ args: ['--park-after-ms', '500', '--cleanup-interval-ms', '300'] });
    const touch = (file: string) => tool('Bash', { command: `touch ${file}`, description: 'Make a file' });
    const question = { question: 'Which colour?', header: 'Colour', multiSelect: false };
    const options = [
      { label: 'red', description: 'Warm' },
      { label: 'blue', description: 'Cold' },
    ];
    const ask = tool('AskUserQuestion', { questions: [{ ...question, options }] });
    hub.model.on('Ask me late').reply(ask, touch('asked'), touch('asked'), text('That ran.'));
    hub.model.on('Ask me too late').reply(touch('never'), text('Never mind.'));
    hub.model.on('but not carried out').reply(touch('never'), touch('never'), text('Made at last.'));
    const { page } = await world.open();
    const call = (name: string) => page.locator('.row.tool', { hasText: name });
    const untilParked = (sessionId: string, times: number) =>
      eventually(
        async () => {
          const route = `audit?session=${sessionId}&tool=parked`;
          return (await hub.api<AuditPage>('GET', route, undefined, hub.admin)).entries.length === times;
        },
        { what: 'the process is given back' },
      );
    try {
      await page.goto(hub.url);
      await signInWith(page, hub.admin);
      const late = await hub.startSession({ prompt: 'Ask me late', title: 'Late' });
      await page.goto(`${hub.url}#/sessions/${late.sessionId}`);
      await untilParked(late.sessionId, 1);
      await page.getByLabel('blue').check();
      await page.getByRole('button', { name: 'Answer', exact: true }).click();
      await page.getByRole('button', { name: 'Change…' }).waitFor();
      expect(await call('AskUserQuestion').getAttribute('class')).toContain('tool-done');
      await untilParked(late.sessionId, 2);
      await page.getByRole('button', { name: 'Change…' }).click();
      await page.getByLabel('Changed command').fill('touch changed');
      await page.getByRole('button', { name: 'Run with changes' }).click();
      await page.getByText('That ran.').waitFor();
      await waitForState(page, 'Idle');
      const bash = await call('Bash').allInnerTexts();
      expect(bash).toEqual([
        expect.stringMatching(/touch asked[^]*made again below/),
        expect.stringMatching(/touch changed/),
      ]);
      expect(await page.locator('.session-header .activity').innerText()).not.toContain('failed');

      const tooLate = await hub.startSession({ prompt: 'Ask me too late', title: 'Too late' });
      await page.goto(`${hub.url}#/sessions/${tooLate.sessionId}`);
      await untilParked(tooLate.sessionId, 1);
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      await page.getByText('Never mind.').waitFor();
      await page.getByText('Allowed, but not carried out.').waitFor();
      await page.getByRole('link', { name: 'Work' }).click();
      await page.getByText('0 commands run').waitFor();
      await page.getByRole('link', { name: 'Timeline' }).click();
      await page.getByRole('button', { name: 'Ask again' }).click();
      await untilParked(tooLate.sessionId, 2);
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      await page.getByText('Made at last.').waitFor();
      expect(await page.getByText('made again below').count()).toBe(2);
      expect(await page.getByText('Allowed, but not carried out.').count()).toBe(0);
      expect(await page.locator('.row.prompt').count()).toBe(1);
    } finally {
      await page.close();
      await hub.close();
    }
  });

  test('what a decision allows beyond its call is on the timeline and in the audit', async () => {
    const { hub } = world;
    const write = (name: string) => tool('Write', { file_path: world.file(name), content: `${name}\n` });
    const touch = tool('Bash', { command: 'touch touched', description: 'Touch it' });
    hub.model.on('Write both').reply(touch, write('one.txt'), write('two.txt'), text('Both written.'));
    const page = await world.openSignedIn();
    const { sessionId } = await hub.startSession({ prompt: 'Write both', title: 'Both' });
    await cardOf(page, 'Both').getByText('touch touched').first().waitFor();
    await clickButton(page, 'Both', 'Always allow');
    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    await page.getByRole('button', { name: 'Allow edits in this session' }).click();
    await page.getByText('Both written.').waitFor();
    await page.getByText('Mode is now acceptEdits').waitFor();
    await page.goto(`${hub.url}#/audit?session=${sessionId}&kind=decision`);
    const details = (what: string) => page.locator('.audit-row', { hasText: what }).locator('.audit-details');
    await details('one.txt').getByText('alsoAllowed: mode acceptEdits').waitFor();
    await details('touch touched').getByText('alsoAllowed: rule for Bash').waitFor();
  });

  test('a request that an interrupt settles is not said to be denied by somebody', async () => {
    const { hub } = world;
    hub.model.on('Ask in vain').reply(tool('Bash', { command: 'touch vain', description: 'Touch it' }));
    const page = await world.openSignedIn();
    const { sessionId } = await hub.startSession({ prompt: 'Ask in vain', title: 'Vain' });
    const card = cardOf(page, 'Vain');
    await card.getByText('touch vain').first().waitFor();
    await hub.api('POST', `sessions/${sessionId}/interrupt`, {});
    await card.locator('.outcome').getByText('Denied because the turn was interrupted').waitFor();
    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    await page.reload();
    const decided = page.locator('.decided');
    await decided.waitFor();
    expect(await decided.innerText()).toMatch(/^Denied because the turn was interrupted/);
  });

  test('work that a person must approve waits for them, says so, and then who has', async () => {
    const hub = await RealHub.open({ args: ['--approvals', 'human'] });
    hub.model.on('Add a note').reply(text('Nothing to add.'));
    const [owner, approver] = await Promise.all([world.open(), world.open()]);
    try {
      const { sessionId } = await hub.startSession({
        prompt: 'Add a note',
        title: 'Approved',
        workspace: { type: 'worktree' },
      });
      await owner.page.goto(`${hub.url}#/sessions/${sessionId}/work`);
      await signInWith(owner.page, hub.caller);
      await owner.page.getByText('No files have changed').waitFor();
      const { workspace } = await hub.api<ApiSession>('GET', `sessions/${sessionId}`);
      await writeFile(`${workspace?.path}/note.txt`, 'noted\n');
      await owner.page.getByRole('button', { name: 'Apply', exact: true }).click();
      await owner.page.getByRole('button', { name: 'Yes, apply it' }).click();
      const asked = owner.page.getByText('A person must approve it first');
      await asked.waitFor();
      await waitForState(owner.page, 'Waiting');
      expect(await asked.count()).toBe(1);
      expect(await owner.page.locator('.session-header .activity').innerText()).toContain(
        'waiting for permission: Apply',
      );
      await approver.page.goto(hub.url);
      await signInWith(approver.page, await hub.token('Nora', 'approver'));
      await clickButton(approver.page, 'Approved', 'Allow');
      await owner.page.locator('.applied', { hasText: 'by Nora' }).waitFor();
      await asked.waitFor({ state: 'detached' });
      expect(await owner.page.getByText('action "discard"').count()).toBe(0);
    } finally {
      await owner.page.close();
      await approver.page.close();
      await hub.close();
    }
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
