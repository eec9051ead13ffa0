import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { seriousFindings } from './axe.ts';
import { openBrowser, openPage, PHONE, type OpenPage } from './browser.ts';
import { RealHub } from './real-hub.ts';

/** Whole journeys: the built page, the real hub, the real Claude Code, a scripted model. */

let hub: RealHub;
let browser: Browser;
const pages: OpenPage[] = [];

beforeAll(async () => {
  [hub, browser] = await Promise.all([RealHub.open(), openBrowser()]);
}, 90_000);
afterAll(async () => {
  await browser?.close();
  await hub?.close();
}, 60_000);
afterEach(async () => {
  for (const { context, complaints, hosts } of pages.splice(0)) {
    await context.close();
    expect(complaints).toEqual([]);
    expect([...hosts].filter((host) => host !== new URL(hub.url).host)).toEqual([]);
  }
});

async function openSignedIn(options: Parameters<typeof openPage>[1] = {}): Promise<Page> {
  const opened = await openPage(browser, options);
  pages.push(opened);
  await opened.page.goto(await hub.link());
  await opened.page.getByRole('status').getByText('Connected').waitFor();
  return opened.page;
}

async function openWithToken(token: string): Promise<Page> {
  const opened = await openPage(browser);
  pages.push(opened);
  await opened.page.goto(hub.url);
  await opened.page.getByLabel('Token').fill(token);
  await opened.page.getByRole('button', { name: 'Sign in' }).click();
  await opened.page.getByRole('status').getByText('Connected').waitFor();
  return opened.page;
}

/** The card of a session's request. */
const cardOf = (page: Page, title: string) => page.locator('article.request', { hasText: title });
const press = (page: Page, title: string, name: string) =>
  cardOf(page, title).getByRole('button', { name, exact: true }).click();
const file = (name: string) => path.join(hub.home.project, name);

test('a link signs in once; used again, or by a page of another origin, it opens nothing', async () => {
  const link = await hub.link();
  const first = await openPage(browser);
  pages.push(first);
  await first.page.goto(link);
  await first.page.getByRole('heading', { name: 'Inbox' }).waitFor();
  expect(new URL(first.page.url()).hash).not.toContain('code');
  await first.page.reload();
  await first.page.getByRole('heading', { name: 'Inbox' }).waitFor();

  const second = await openPage(browser);
  pages.push(second);
  await second.page.goto(link);
  await second.page.getByText('This link does not work any more').waitFor();
  await second.page.getByLabel('Token').waitFor();

  // An agent's own dev server: the same host, so the browser sends it the cookie too.
  const stranger = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>dev server</p>');
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const other = await first.context.newPage();
  try {
    await other.goto(`http://127.0.0.1:${(stranger.address() as AddressInfo).port}/`);
    const answer = (init: string) =>
      other.evaluate<string>(
        `fetch('${hub.url}api/v1/sessions', ${init}).then((response) => String(response.status), (error) => 'refused')`,
      );
    expect(await answer(`{ credentials: 'include' }`)).toMatch(/refused|401|403/);
    expect(await answer(`{ credentials: 'include', mode: 'no-cors' }`)).toMatch(/refused|0|401|403/);
    expect(await other.evaluate<string | null>(`localStorage.getItem('claude-code-hub.sign-in')`)).toBeNull();
  } finally {
    await other.close();
    stranger.closeAllConnections();
    await new Promise((resolve) => stranger.close(resolve));
  }
});

test('an edit is approved from the inbox of a phone, by touch, and happens', async () => {
  await writeFile(file('price.txt'), 'one\ntwo\nthree\n');
  hub.model.on('Change the second line').reply(
    tool('Read', { file_path: file('price.txt') }),
    text('The second line is wrong.').tool('Edit', {
      file_path: file('price.txt'),
      old_string: 'two',
      new_string: 'zwei',
    }),
    text('Changed it.'),
  );
  const page = await openSignedIn({ viewport: PHONE, touch: true });
  await page.getByText('Nothing waits for you').waitFor();
  const session = await hub.begin({ prompt: 'Change the second line', title: 'Phone edit' });
  const card = cardOf(page, 'Phone edit');
  await card.getByText('zwei').waitFor();
  expect(await card.locator('.line.removed').innerText()).toContain('two');
  await card.getByRole('button', { name: 'Allow', exact: true }).tap();
  await card.getByText(/Allowed by you/).waitFor();
  await eventually(async () => (await readFile(file('price.txt'), 'utf8')) === 'one\nzwei\nthree\n', {
    what: 'the edit is made',
  });
  await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
  await page.getByText('Changed it.').waitFor();
  await page.getByText('Change the second line').first().waitFor();
  expect(await seriousFindings(page)).toEqual([]);
});

test('a command is denied with words that reach Claude, and a question answered', async () => {
  hub.model.on('Clean up').reply(
    tool('Bash', { command: 'touch cleaned', description: 'Clean up' }),
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
    text('Thank you.'),
  );
  const page = await openSignedIn();
  await hub.begin({ prompt: 'Clean up', title: 'Tidy' });
  await cardOf(page, 'Tidy').getByText('touch cleaned').first().waitFor();
  await cardOf(page, 'Tidy').getByLabel('Message to Claude').fill('Ask me for the folder first');
  await press(page, 'Tidy', 'Deny');
  await cardOf(page, 'Tidy').getByText('Ask me for the folder first').waitFor();
  await page.getByLabel('cache').check();
  await page.getByRole('button', { name: 'Answer', exact: true }).click();
  const told = () => JSON.stringify(hub.model.requests);
  await eventually(() => told().includes('Ask me for the folder first'), { what: 'the words reach Claude' });
  await eventually(() => told().includes('cache'), { what: 'the answer reaches Claude' });
});

test('a plan is read as text and allowed, a long task watched, its files put back', async () => {
  const steps = Array.from({ length: 40 }, (_, index) => tool('Bash', { command: `echo step ${index + 1}` }));
  hub.model.on('Plan it').reply(text('## Plan\n\n1. Write **one** file').tool('ExitPlanMode', {}), text('Planned.'));
  hub.model
    .on('Do all of it')
    .reply(tool('Write', { file_path: file('made.txt'), content: 'made\n' }), ...steps, text('All forty done.'));
  const page = await openSignedIn();
  const session = await hub.begin({
    prompt: 'Plan it',
    title: 'Planned',
    permissionMode: 'plan',
    enableFileCheckpointing: true,
  });
  const card = cardOf(page, 'Planned');
  await card.getByRole('heading', { name: 'Plan', exact: true }).waitFor();
  expect(await card.locator('.plan strong').innerText()).toBe('one');
  await press(page, 'Planned', 'Allow');
  await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
  await page.getByText('Planned.').waitFor();
  await page.getByText('Idle').first().waitFor();
  await page.locator('.turn-options summary').click();
  await page.getByLabel('Permission mode').selectOption('acceptEdits');
  await page.getByLabel('Message', { exact: true }).fill('Do all of it');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('All forty done.').waitFor({ timeout: 60_000 });
  await page.getByText('Idle').first().waitFor();
  expect(await page.locator('.tool-done').count()).toBeGreaterThan(5);
  await page.evaluate(`document.querySelector('.timeline').scrollTo({ top: 0 })`);
  await page.getByText('Do all of it').waitFor();
  await page.getByRole('button', { name: 'Rewind files to here' }).last().click();
  const dialog = page.getByRole('dialog', { name: 'Rewind files' });
  await dialog.getByText('made.txt').waitFor();
  await dialog.getByRole('button', { name: 'Put them back' }).click();
  await dialog.getByText('1 file put back').waitFor();
  await expect(readFile(file('made.txt'), 'utf8')).rejects.toThrow('ENOENT');
}, 120_000);

test('two people answer one request: one decides, the other is told who and what', async () => {
  hub.model
    .on('Write a note')
    .reply(tool('Write', { file_path: file('note.txt'), content: 'hello\n' }), text('Written.'));
  const [anna, ben] = [
    await openWithToken(await hub.token('Anna', 'approver')),
    await openWithToken(await hub.token('Ben', 'approver')),
  ];
  await hub.begin({ prompt: 'Write a note', title: 'Shared' });
  await cardOf(anna, 'Shared').getByText('hello').waitFor();
  await cardOf(ben, 'Shared').getByText('hello').waitFor();
  await Promise.all([press(anna, 'Shared', 'Allow'), press(ben, 'Shared', 'Deny').catch(() => undefined)]);
  const words = (page: Page) => cardOf(page, 'Shared').locator('.outcome').innerText();
  await cardOf(anna, 'Shared').locator('.outcome').waitFor();
  await cardOf(ben, 'Shared').locator('.outcome').waitFor();
  const [told, other] = [await words(anna), await words(ben)];
  const decided = told.includes('Allowed') ? /Allowed by/ : /Denied by/;
  expect(told).toMatch(decided);
  expect(other).toMatch(decided);
  expect([told, other].filter((outcome) => outcome.includes('by you'))).toHaveLength(1);
});

test('a session is sent a message, interrupted and forked from its page', async () => {
  hub.model.on('Count slowly').reply(text('One.').delay(30_000));
  hub.model.on('Say hello').reply(text('Hello there.'));
  hub.model.on('Take another way').reply(text('Another way it is.'));
  const page = await openSignedIn();
  await page.getByRole('button', { name: 'New session' }).click();
  await page.getByLabel('Prompt').fill('Count slowly');
  await page.getByLabel('Directory').fill(hub.home.project);
  await page.getByRole('button', { name: 'Start session' }).click();
  await page.getByText('Working').first().waitFor();
  await page.getByRole('button', { name: 'Interrupt' }).click();
  await page.getByText('Interrupted').first().waitFor();
  await page.getByLabel('Message', { exact: true }).fill('Say hello');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('Hello there.').waitFor();
  await page.getByText('Idle').first().waitFor();
  const first = page.url();
  await page.getByLabel('Message', { exact: true }).fill('Take another way');
  await page.getByRole('button', { name: 'Fork' }).click();
  await page.getByText('Another way it is.').waitFor();
  expect(page.url()).not.toBe(first);
  await page.getByRole('button', { name: 'Cancel session' }).click();
  await page.getByRole('button', { name: 'Yes, cancel it' }).click();
  await page.getByText('Cancelled').first().waitFor();
});

test('the work of a worktree is looked at and applied', async () => {
  hub.model
    .on('Add a readme')
    .reply(tool('Write', { file_path: 'README.md', content: '# Shop\n' }), text('There it is.'));
  const page = await openSignedIn();
  const session = await hub.begin({
    prompt: 'Add a readme',
    title: 'Tree',
    permissionMode: 'acceptEdits',
    workspace: { type: 'worktree' },
  });
  await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
  await page.getByText('There it is.').waitFor();
  await page.getByText('Idle').first().waitFor();
  await page.getByRole('link', { name: 'Work' }).click();
  await page.getByText('README.md').waitFor();
  expect(await page.locator('.line.added').first().innerText()).toContain('# Shop');
  await page.getByRole('button', { name: 'Apply', exact: true }).click();
  await page.getByText(/^Applied/).waitFor();
  expect(await readFile(file('README.md'), 'utf8')).toBe('# Shop\n');
});

test('a hub that is killed and comes back loses nothing, with the page open all the while', async () => {
  hub.model
    .on('Wait for me')
    .reply(tool('Write', { file_path: file('later.txt'), content: 'later\n' }), text('Written at last.'));
  const page = await openSignedIn();
  await hub.begin({ prompt: 'Wait for me', title: 'Patient' });
  await cardOf(page, 'Patient').getByText('later.txt').first().waitFor();
  await hub.kill();
  await page
    .getByRole('status')
    .getByText(/Offline since/)
    .waitFor();
  await press(page, 'Patient', 'Allow');
  await cardOf(page, 'Patient').getByText('Trying again').waitFor();
  await hub.start();
  await cardOf(page, 'Patient')
    .getByText(/Allowed by you/)
    .waitFor();
  await page.getByRole('status').getByText('Connected').waitFor();
});

test('a sign-in that is revoked ends at once, and each role has its own controls', async () => {
  const admin = await openSignedIn();
  const viewer = await openWithToken(await hub.token('Vera', 'viewer'));
  expect(await viewer.getByRole('button', { name: 'New session' }).count()).toBe(0);
  expect(await viewer.getByRole('link', { name: 'Tokens', exact: true }).count()).toBe(0);
  await viewer.getByRole('link', { name: 'Sessions', exact: true }).click();
  await viewer.locator('.session-row').first().waitFor();
  await admin.getByRole('link', { name: 'Tokens', exact: true }).click();
  const signIns = admin.getByRole('region', { name: 'Sign-ins' });
  await signIns.getByRole('button', { name: 'Revoke Vera' }).click();
  await admin.getByRole('button', { name: 'Yes, revoke it' }).click();
  await viewer.getByText('Your sign-in has ended').waitFor();
  await admin.getByRole('link', { name: 'Audit', exact: true }).click();
  await admin.getByText('sign-in').first().waitFor();
  expect(await seriousFindings(admin)).toEqual([]);
});
