import { readFile, writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { AuditPage } from '../../../src/schema/api-admin.ts';
import { gate, reply, text, tool } from '../../../src/scripted-model/reply.ts';
import { eventually } from '../../harness/eventually.ts';
import { seriousFindings } from '../axe.ts';
import { PHONE } from '../browser.ts';
import { seeAll } from '../page-steps.ts';
import { cardOf, clickButton, sendMessage, waitForState, type JourneyWorld } from '../journey-world.ts';

export function requests(world: JourneyWorld): void {
  test('an edit is approved by touch in the inbox on a phone, and is then made', async () => {
    const { hub } = world;
    const price = world.file('price.txt');
    await writeFile(price, 'one\ntwo\nthree\n');
    hub.model
      .on('Change the second line')
      .reply(
        tool('Read', { file_path: price }),
        text('The second line is wrong.').tool('Edit', { file_path: price, old_string: 'two', new_string: 'zwei' }),
        text('Changed it.'),
      );
    const page = await world.openSignedIn({ viewport: PHONE, touch: true });
    await page.getByText('Nothing is waiting for you').waitFor();
    // What the browser has loaded for that, as it came over the wire.
    const sizes = await page.evaluate<number[]>(
      `performance.getEntries().filter(({ name }) => !name.includes('/api/')).map((one) => one.encodedBodySize ?? 0)`,
    );
    const loaded = sizes.reduce((sum, size) => sum + size, 0);
    expect(loaded).toBeGreaterThan(30_000);
    expect(loaded).toBeLessThan(90_000);
    const session = await hub.startSession({ prompt: 'Change the second line', title: 'Phone edit' });
    const card = cardOf(page, 'Phone edit');
    await card.getByText('zwei').waitFor();
    expect(await card.locator('.line.removed').innerText()).toContain('two');
    await card.getByRole('button', { name: 'Allow', exact: true }).tap();
    await card.getByText(/Allowed by you/).waitFor();
    await eventually(async () => (await readFile(price, 'utf8')) === 'one\nzwei\nthree\n', {
      what: 'the edit is made',
    });
    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await page.getByText('Changed it.').waitFor();
    await page.getByText('Change the second line').first().waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });

  test('a request whose file has changed is allowed after a second look at what changed', async () => {
    const { hub } = world;
    const file = world.file('changed.txt');
    await writeFile(file, 'as Claude saw it\n');
    const write = tool('Write', { file_path: file, content: 'what Claude wants\n' });
    hub.model.on('Overwrite it').reply(tool('Read', { file_path: file }), write, text('Tried it.'));
    const page = await world.openSignedIn();
    const { sessionId } = await hub.startSession({ prompt: 'Overwrite it', title: 'Changed meanwhile' });
    const card = cardOf(page, 'Changed meanwhile');
    await card.getByRole('button', { name: 'Allow', exact: true }).waitFor();
    await writeFile(file, 'somebody else was here\n');
    await clickButton(page, 'Changed meanwhile', 'Allow');
    await card.getByText('changed.txt has changed').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    expect(await hub.api('GET', `sessions/${sessionId}`)).toMatchObject({ status: 'waiting_permission' });
    await card.getByRole('button', { name: 'Allow anyway' }).click();
    await card.getByText(/Allowed by you/).waitFor();
  });

  test('a file of 401 lines is allowed only once its last line is on the page, and is then written', async () => {
    const { hub } = world;
    const file = world.file('long.txt');
    const content = `${Array.from({ length: 400 }, (_, index) => `line ${index + 1}`).join('\n')}\nthe last line\n`;
    hub.model.on('Write a long file').reply(tool('Write', { file_path: file, content }), text('Written.'));
    const page = await world.openSignedIn();
    await hub.startSession({ prompt: 'Write a long file', title: 'Long' });
    const card = cardOf(page, 'Long');
    await card.getByText('Allow is off until you have unfolded the whole input.').waitFor();
    expect(await card.getByRole('button', { name: 'Allow', exact: true }).isDisabled()).toBe(true);
    expect(await seriousFindings(page)).toEqual([]);
    await clickButton(page, 'Long', 'Show all 401 lines');
    await card.getByText('the last line').waitFor();
    await clickButton(page, 'Long', 'Allow');
    await card.getByText(/Allowed by you/).waitFor();
    await eventually(async () => (await readFile(file, 'utf8').catch(() => '')) === content, {
      what: 'the file is written',
    });
  });

  test('a command is denied with a message that reaches Claude, a question is answered, and messages sent meanwhile are queued, changed and taken back', async () => {
    const { hub } = world;
    const held = gate(text('Thank you.'));
    hub.model.on('Clean up').reply(
      tool('Bash', { command: 'touch cleaned', description: 'Clean up' }),
      tool('Bash', { command: 'touch again', description: 'Clean up again' }),
      tool('AskUserQuestion', {
        questions: [
          {
            question: 'Which folder?',
            header: 'Folder',
            multiSelect: false,
            options: [
              { label: 'build', description: 'What was built' },
              { label: 'cache', description: 'What was fetched' },
            ],
          },
        ],
      }),
      held,
    );
    hub.model.on('And then that instead').reply(text('The second is done.'));
    const page = await world.openSignedIn();
    const session = await hub.startSession({ prompt: 'Clean up', title: 'Tidy' });
    await cardOf(page, 'Tidy').getByText('touch cleaned').first().waitFor();
    await cardOf(page, 'Tidy').getByLabel('Message to Claude').fill('Ask me for the folder first');
    await clickButton(page, 'Tidy', 'Deny');
    await cardOf(page, 'Tidy').getByText('Ask me for the folder first').waitFor();
    // What Claude is told in its place are not this person's words.
    await page.locator('article.request', { hasText: 'touch again' }).getByRole('button', { name: 'Deny' }).click();
    const wordless = page.locator('article.request', { hasText: 'touch again' }).locator('.outcome');
    await wordless.getByText(/Denied by you/).waitFor();
    expect(await wordless.innerText()).not.toMatch(/permission denied/i);
    await page.getByLabel('cache').check();
    await page.getByRole('button', { name: 'Answer', exact: true }).click();
    const sentToModel = () => JSON.stringify(hub.model.requests);
    await eventually(() => sentToModel().includes('Ask me for the folder first'), {
      what: 'the message reaches Claude',
    });
    await eventually(() => sentToModel().includes('cache'), { what: 'the answer reaches Claude' });
    expect(sentToModel()).toContain('Permission denied by a person');

    await held.arrived;
    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await waitForState(page, 'Working');
    await sendMessage(page, 'And then this');
    const queued = page.getByRole('list', { name: 'Queued messages' });
    await queued.getByText('And then this').waitFor();
    // Nothing happens in the session meanwhile: another tab has only the stream to learn of it.
    const tab = await page.context().newPage();
    await tab.goto(page.url());
    const inTab = tab.getByRole('list', { name: 'Queued messages' });
    await inTab.getByText('And then this').waitFor();
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('');
    await sendMessage(page, 'Never do this');
    await inTab.getByText('Never do this').waitFor();
    const unwanted = queued.getByRole('listitem').filter({ hasText: 'Never do this' });
    await unwanted.getByRole('button', { name: 'Remove' }).click();
    await unwanted.waitFor({ state: 'detached' });
    await inTab.getByText('Never do this').waitFor({ state: 'detached' });
    await queued.getByRole('button', { name: 'Edit' }).click();
    await queued.locator('textarea:focus').waitFor();
    await page.getByLabel('Queued message', { exact: true }).fill('And then that instead');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await queued.getByText('And then that instead').waitFor();
    expect(await queued.getByRole('listitem').count()).toBe(1);
    await inTab.getByText('And then that instead').waitFor();
    await inTab.getByText('And then this').waitFor({ state: 'detached' });
    held.release();
    await page.getByText('The second is done.').waitFor();
    await waitForState(page, 'Idle');
    await queued.waitFor({ state: 'detached' });
    await inTab.waitFor({ state: 'detached' });
    await tab.close();
    expect(await page.getByText('Thank you.').count()).toBe(1);
    expect(sentToModel()).not.toMatch(/And then this|Never do this/);
  });

  test('a plan is rendered and allowed, a long task is followed to its end, and its files are restored', async () => {
    const { hub } = world;
    const made = world.file('made.txt');
    const steps = Array.from({ length: 10 }, (_, index) =>
      [1, 2, 3, 4].reduce((four, step) => four.tool('Bash', { command: `echo step ${4 * index + step}` }), reply()),
    );
    hub.model.on('Plan it').reply(text('## Plan\n\n1. Write **one** file').tool('ExitPlanMode', {}), text('Planned.'));
    hub.model
      .on('Do all of it')
      .reply(tool('Write', { file_path: made, content: 'made\n' }), ...steps, text('All forty done.'));
    const page = await world.openSignedIn();
    const session = await hub.startSession({
      prompt: 'Plan it',
      title: 'Planned',
      permissionMode: 'plan',
      enableFileCheckpointing: true,
    });
    const card = cardOf(page, 'Planned');
    await card.getByRole('heading', { name: 'Plan', exact: true }).waitFor();
    expect(await card.locator('.plan strong').innerText()).toBe('one');
    await clickButton(page, 'Planned', 'Allow');
    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await page.getByText('Planned.').waitFor();
    await waitForState(page, 'Idle');
    await page.locator('.turn-options summary').click();
    await page.getByLabel('Permission mode').selectOption('acceptEdits');
    await sendMessage(page, 'Do all of it');
    await page.getByText('All forty done.').waitFor({ timeout: 60_000 });
    await waitForState(page, 'Idle');
    expect(await page.locator('.tool-done').count()).toBeGreaterThan(5);
    await page.evaluate(`document.querySelector('.timeline').scrollTo({ top: 0 })`);
    await page.getByText('Do all of it').waitFor();
    await page.getByRole('button', { name: 'Rewind files to here' }).last().click();
    const dialog = page.getByRole('dialog', { name: 'Rewind files' });
    await dialog.getByText('made.txt').waitFor();
    await dialog.getByRole('button', { name: 'Restore them' }).click();
    await dialog.getByText('1 file restored').waitFor();
    await expect(readFile(made, 'utf8')).rejects.toThrow('ENOENT');
  }, 120_000);

  test('a plan is kept, then accepted with its edits; what a session asks at once is allowed at once', async () => {
    const { hub } = world;
    const [first, second] = ['first.txt', 'second.txt'].map((name) => world.file(name));
    const plan = (words: string) => text(`## ${words}\n\n1. Write two files`).tool('ExitPlanMode', {});
    const outside = ['one', 'two', 'three'].map((name) => `/etc/no-such-${name}`);
    hub.model.on('Plan two files').reply(
      plan('First plan'),
      plan('Second plan'),
      reply()
        .tool('Write', { file_path: first, content: 'first\n' })
        .tool('Write', { file_path: second, content: 'second\n' }),
      outside.reduce((three, file_path) => three.tool('Read', { file_path }), reply()),
      text('Both are written.'),
    );
    const page = await world.openSignedIn();
    await hub.startSession({ prompt: 'Plan two files', title: 'Two files', permissionMode: 'plan' });
    const cards = cardOf(page, 'Two files');
    await cards.getByRole('heading', { name: 'First plan' }).waitFor();
    await clickButton(page, 'Two files', 'Keep planning');
    await cards.getByRole('heading', { name: 'Second plan' }).waitFor();
    await page.getByRole('button', { name: /^Clear \d+ answered$/ }).click();
    await clickButton(page, 'Two files', 'Allow and accept edits');
    // The files are written without a question, and three others are asked for at once.
    for (const path of outside) await cards.getByText(path).first().waitFor();
    expect(await readFile(first!, 'utf8')).toBe('first\n');
    expect(await readFile(second!, 'utf8')).toBe('second\n');
    await seeAll(cards);
    await page.getByRole('button', { name: 'Allow all 3' }).click();
    await eventually(async () => (await cards.getByText('Allowed by you').count()) === 4, { what: 'all are allowed' });
    await eventually(() => JSON.stringify(hub.model.requests).includes('no-such-three'), { what: 'they were made' });
  });

  test('when two people answer the same request in three tabs, it is decided once and every tab shows by whom', async () => {
    const { hub } = world;
    hub.model
      .on('Write a note')
      .reply(tool('Write', { file_path: world.file('note.txt'), content: 'hello\n' }), text('Written.'));
    const anna = await world.openSignedIn({ token: await hub.token('Anna', 'approver') });
    const ben = await world.openSignedIn({ token: await hub.token('Ben', 'approver') });
    const tab = await anna.context().newPage();
    await tab.goto(hub.url);
    const session = await hub.startSession({ prompt: 'Write a note', title: 'Shared' });
    const pages = [anna, ben, tab];
    for (const page of pages) await cardOf(page, 'Shared').getByText('hello').waitFor();
    const allow = (page: Page) => cardOf(page, 'Shared').getByRole('button', { name: 'Allow', exact: true });
    // A tab that learns of the decision before its click no longer has the button.
    await Promise.all([
      allow(anna)
        .dblclick({ timeout: 2_000 })
        .catch(() => undefined),
      clickButton(ben, 'Shared', 'Deny').catch(() => undefined),
      allow(tab)
        .click({ timeout: 2_000 })
        .catch(() => undefined),
    ]);
    const shown = () => Promise.all(pages.map((page) => cardOf(page, 'Shared').locator('.outcome').innerText()));
    // A tab may learn of the decision before it gets the response to its own answer.
    const outcomes = await eventually(
      async () => {
        const all = await shown();
        return all.some((outcome) => outcome.includes('by you')) ? all : undefined;
      },
      { what: 'the tab that decided shows "by you"' },
    );
    const decided = outcomes[0]?.includes('Allowed') === true ? /Allowed by .*Anna/ : /Denied by .*Ben/;
    for (const outcome of outcomes) expect(outcome).toMatch(decided);
    expect(outcomes.filter((outcome) => outcome.includes('by you'))).toHaveLength(1);
    const route = `audit?kind=decision&session=${session.sessionId}`;
    const audited = async () => (await hub.api<AuditPage>('GET', route, undefined, hub.admin)).entries;
    // The audit log is written after the response.
    await eventually(async () => (await audited()).length, { what: 'the decision is audited' });
    expect(await audited()).toHaveLength(1);
  });
}
