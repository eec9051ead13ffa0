import { execFile } from 'node:child_process';
import { access, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { gate, hang, text, tool } from '../../../src/scripted-model/reply.ts';
import type { SessionsPage } from '../../../src/schema/api.ts';
import { sendMessage, waitForState, type JourneyWorld } from '../journey-world.ts';

export function sessions(world: JourneyWorld): void {
  test('a session is started, interrupted, sent a message, forked and cancelled from its page', async () => {
    const { hub } = world;
    hub.model.on('Count slowly').reply(hang());
    hub.model.on('Say hello').reply(text('Hello there.'));
    hub.model.on('Take another way').reply(text('Another way it is.'));
    hub.model.on('Take a third way').reply(text('A third way it is.'));
    const page = await world.openSignedIn();
    await page.getByRole('button', { name: 'New session' }).click();
    await page.getByLabel('Prompt').fill('Count slowly');
    // The directory is found by browsing from a path as people write it.
    const shop = path.join(hub.home.home, 'code', 'shop');
    await mkdir(shop, { recursive: true });
    await page.getByLabel('Directory').fill('~');
    await page.getByRole('button', { name: 'Browse…' }).click();
    const browser = page.getByRole('dialog', { name: 'Choose a directory' });
    await browser.getByText('~', { exact: true }).waitFor();
    await browser.getByRole('button', { name: 'code' }).click();
    await browser.getByRole('button', { name: 'shop' }).click();
    await browser.getByText('~/code/shop', { exact: true }).waitFor();
    await browser.getByRole('button', { name: 'Use this directory' }).click();
    expect(await page.getByLabel('Directory').inputValue()).toBe(shop);
    await page.getByLabel('Directory').fill('~/code/shop');
    await page.getByRole('button', { name: 'Start session' }).click();
    await waitForState(page, 'Working');
    expect(await page.locator('.session-facts .project').innerText()).toBe('shop');
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await waitForState(page, 'Interrupted');
    await sendMessage(page, 'Say hello');
    await page.getByText('Hello there.').waitFor();
    await waitForState(page, 'Idle');
    const first = page.url();
    await page.getByLabel('Message', { exact: true }).fill('Take another way');
    await page.getByRole('button', { name: 'Fork' }).click();
    await page.getByText('Another way it is.').waitFor();
    expect(page.url()).not.toBe(first);
    // A fork names its origin, and shows what it has from there.
    await page.getByText(/^Forked from/).waitFor();
    expect(await page.getByText('Hello there.').count()).toBe(0);
    await page.getByRole('button', { name: 'Show what it inherited' }).click();
    await page.getByText('Hello there.').waitFor();
    expect(await page.locator('.origin a').getAttribute('href')).toBe(new URL(first).hash);
    // A fork of a fork has what both had.
    const second = page.url();
    await page.getByLabel('Message', { exact: true }).fill('Take a third way');
    await page.getByRole('button', { name: 'Fork' }).click();
    await page.getByText('A third way it is.').waitFor();
    await page.getByRole('button', { name: 'Show what it inherited' }).click();
    await page.getByText('Another way it is.').waitFor();
    await page.getByText('Hello there.').waitFor();
    expect(await page.locator('.origin a').getAttribute('href')).toBe(new URL(second).hash);
    await page.getByRole('button', { name: 'Cancel session' }).click();
    await page.getByRole('button', { name: 'Yes, cancel it' }).click();
    await waitForState(page, 'Cancelled');
  });

  test('a session is renamed, put away and found again; a message takes it back, and its answer is marked until seen', async () => {
    const { hub } = world;
    const held = gate(text('And two.'));
    hub.model.on('Say one').reply(text('One.'));
    hub.model.on('Say two').reply(held);
    const page = await world.openSignedIn();
    const { sessionId } = await hub.startSession({ prompt: 'Say one', title: 'Counting' });
    const row = page.locator('.session-row', { hasText: 'Counting aloud' });
    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    await page.getByText('One.').waitFor();
    await waitForState(page, 'Idle');
    await page.getByRole('link', { name: 'Details' }).click();
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Title').fill('Counting aloud');
    await page.getByRole('button', { name: 'Save title' }).click();
    await page.getByRole('heading', { name: 'Counting aloud' }).waitFor();
    await page.getByRole('button', { name: 'Archive this session' }).click();
    await page.locator('.session-title').getByText('Archived').waitFor();

    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByRole('button', { name: 'At rest' }).click();
    await row.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Archived' }).click();
    await row.waitFor();
    await page.reload();
    await row.waitFor();
    const { sessions: listed } = await hub.api<SessionsPage>('GET', 'sessions?archived=false');
    expect(listed.map((one) => one.sessionId)).not.toContain(sessionId);

    await hub.api('POST', `sessions/${sessionId}/messages`, { prompt: 'Say two' });
    await row.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await row.getByText('Working').waitFor();
    expect(await row.getByLabel('Not seen yet').count()).toBe(0);
    held.release();
    await row.getByLabel('Not seen yet').waitFor();
    await row.click();
    await page.getByText('And two.').waitFor();
    await page.goBack();
    await row.getByText('Idle').waitFor();
    expect(await row.getByLabel('Not seen yet').count()).toBe(0);
  });

  test('text is shown as it is written, once, with the time it takes', async () => {
    const { hub } = world;
    const story = 'Once upon a time there was a hub that told nobody what it heard until all was said.';
    hub.model.on('Tell a story').reply(text(story).chunks(12, 250));
    const page = await world.openSignedIn();
    const { sessionId } = await hub.startSession({ prompt: 'Tell a story', title: 'Story' });
    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    const written = page.locator('.row.text', { has: page.locator('.cursor') });
    await written.getByText('Once').waitFor();
    expect(await written.innerText()).not.toContain('all was said');
    const steps = page.evaluate<number>(`new Promise((done) => {
      const lengths = new Set();
      const observer = new MutationObserver(() => {
        const row = document.querySelector('.row.text:has(.cursor)');
        if (row) return lengths.add(row.textContent.length);
        observer.disconnect();
        done(lengths.size);
      });
      observer.observe(document.querySelector('.timeline'), { subtree: true, childList: true, characterData: true });
    })`);
    await page.locator('.elapsed').getByText(/\d s/).waitFor();
    await page.getByText(story).waitFor();
    // It takes three seconds. A busy machine shows fewer pieces, never the whole at once.
    expect(await steps).toBeGreaterThanOrEqual(3);
    await waitForState(page, 'Idle');
    await page.locator('.cursor').waitFor({ state: 'detached' });
    expect(await page.getByText('Once upon').count()).toBe(1);
  });

  test('work in a worktree is reviewed and applied; later work is discarded but stays on its branch', async () => {
    const { hub } = world;
    hub.model
      .on('Add a readme')
      .reply(tool('Write', { file_path: 'README.md', content: '# Shop\n' }), text('There it is.'));
    hub.model
      .on('Add a licence')
      .reply(tool('Write', { file_path: 'LICENCE', content: 'Do what you like\n' }), text('Free now.'));
    const page = await world.openSignedIn();
    const { workspace, sessionId } = await hub.startSession({
      prompt: 'Add a readme',
      title: 'Tree',
      permissionMode: 'acceptEdits',
      workspace: { type: 'worktree' },
    });
    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    await page.getByText('There it is.').waitFor();
    await waitForState(page, 'Idle');
    await page.getByRole('link', { name: 'Work', exact: true }).click();
    await page.locator('.file', { hasText: 'README.md' }).waitFor();
    expect(await page.locator('.line.added').first().innerText()).toContain('# Shop');
    expect(await page.locator('.file', { hasText: 'README.md' }).locator('.tag').innerText()).toBe('Added');
    const tab = await page.context().newPage();
    await tab.goto(page.url());
    await tab.locator('.file', { hasText: 'README.md' }).waitFor();
    const apply = async (on: Page) => {
      await on.getByRole('button', { name: 'Apply', exact: true }).click();
      await on.getByRole('dialog').getByRole('button', { name: 'Yes, apply it' }).click();
    };
    await apply(page);
    const applied = page.locator('.applied');
    await applied.waitFor();
    await tab.locator('.applied').waitFor();
    await apply(tab);
    await tab.getByText('There is nothing to apply.').waitFor();
    expect(await readFile(world.file('README.md'), 'utf8')).toBe('# Shop\n');
    const { stdout: head } = await promisify(execFile)('git', ['rev-parse', 'HEAD'], {
      cwd: hub.home.project,
      env: hub.home.env(),
    });
    await page.reload();
    expect(await applied.innerText()).toMatch(new RegExp(`^Applied to \\S+ as ${head.slice(0, 7)} by you`));
    await page.locator('.file', { hasText: 'README.md' }).waitFor();

    await page.goto(`${hub.url}#/sessions/${sessionId}`);
    await sendMessage(page, 'Add a licence');
    await page.getByText('Free now.').waitFor();
    await waitForState(page, 'Idle');
    await page.getByRole('link', { name: 'Work', exact: true }).click();
    await page.locator('.file', { hasText: 'LICENCE' }).waitFor();
    await tab.locator('.file', { hasText: 'LICENCE' }).waitFor();
    expect(await tab.getByText('There is nothing to apply.').count()).toBe(0);
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Discard this worktree?' });
    await dialog.getByRole('button', { name: 'Yes, discard it' }).click();
    await dialog.getByRole('button', { name: 'Discard anyway' }).click();
    await page.getByText(`Discarded. Kept: ${workspace?.branch}.`).waitFor();
    // What is gone is not offered again, in any tab.
    for (const one of [page, tab]) {
      await one.getByText('it was discarded').waitFor();
      expect(await controls(one)).not.toEqual(expect.arrayContaining(['Apply']));
      expect(await controls(one)).not.toEqual(expect.arrayContaining(['Discard']));
    }
    await tab.getByRole('link', { name: 'Timeline' }).click();
    await tab.getByText(`Worktree discarded, kept ${workspace?.branch}`).waitFor();
    await tab.close();
    await expect(access(workspace?.path ?? '')).rejects.toThrow('ENOENT');
    await expect(access(world.file('LICENCE'))).rejects.toThrow('ENOENT');
    const { stdout } = await promisify(execFile)('git', ['show', `${workspace?.branch}:LICENCE`], {
      cwd: hub.home.project,
      env: hub.home.env(),
    });
    expect(stdout).toBe('Do what you like\n');
  });
}

/** Which of the role-dependent controls the page shows. */
export async function controls(page: Page): Promise<string[]> {
  const names = ['New session', 'Send', 'Interrupt', 'Cancel session', 'Fork', 'Apply', 'Discard'];
  const shown = await Promise.all(
    names.map(async (name) => ((await page.getByRole('button', { name, exact: true }).count()) > 0 ? [name] : [])),
  );
  return shown.flat();
}
