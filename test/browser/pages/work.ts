import type { Page, Route } from 'playwright-core';
import { expect, test } from 'vitest';
import type { DiffAnswer } from '../../../src/schema/api-events.ts';
import { event } from '../fixture-data.ts';
import { AT_REST, show } from '../page-world.ts';

/** What a session changed, and whether it can be applied or discarded. */
export function work(): void {
  const TREE = '22222222-2222-4222-8222-222222222222';
  const DIFF = `GET sessions/${TREE}/diff`;
  const refusal = (message: string) => () => ({ status: 400, json: { error: { code: 'INVALID_ARGUMENT', message } } });
  const controls = async (page: Page) =>
    (await page.getByLabel('Worktree').getByRole('button').allInnerTexts()).sort().join(', ');

  test('that cannot be compared can still be discarded, and compared again', async () => {
    const { page, hub } = await show(undefined, {}, AT_REST);
    // The session controls the index of its own worktree.
    hub.overrides.set(DIFF, refusal('/state/worktrees/22222222/index is not a file.'));
    await page.getByRole('link', { name: 'Work', exact: true }).click();
    await page.getByText('index is not a file.').waitFor();
    expect(await controls(page)).toBe('Apply, Discard');
    hub.overrides.delete(DIFF);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.file', { hasText: 'src/price.ts' }).waitFor();
    expect(await controls(page)).toBe('Apply, Discard');
  });

  test('that was discarded is not offered again, by this page or by one that is opened later', async () => {
    const { page, hub } = await show(undefined, {}, `${AT_REST}/work`);
    await page.locator('.file', { hasText: 'src/price.ts' }).waitFor();
    expect(await controls(page)).toBe('Apply, Discard');
    const discarded = event(4, 'progress', { kind: 'discard', outcome: 'kept claude/22222222' });
    hub.data.events[TREE]?.push(discarded);
    hub.overrides.set(DIFF, refusal('There is no worktree 22222222: it was discarded or never created.'));
    hub.publish('event', { sessionId: TREE, ...discarded });
    for (const again of [false, true]) {
      if (again) await page.reload();
      await page.getByText('it was discarded').waitFor();
      expect(await controls(page)).toBe('');
      expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    }
  });

  test('that this page has discarded is not offered again, also before its event arrives', async () => {
    const { page, hub } = await show(undefined, {}, `${AT_REST}/work`);
    await page.locator('.file', { hasText: 'src/price.ts' }).waitFor();
    hub.overrides.set(DIFF, refusal('There is no worktree 22222222: it was discarded or never created.'));
    hub.overrides.set(`POST sessions/${TREE}/discard`, () => ({
      status: 200,
      json: { outcome: 'discarded', keptBranches: [] },
    }));
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    await page.getByRole('button', { name: 'Yes, discard it' }).click();
    await page.getByText('it was discarded').waitFor();
    expect(await controls(page)).toBe('');
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('is shown as the newest comparison has it, also when an older one answers later', async () => {
    const { page, hub } = await show(undefined, {}, AT_REST);
    /** Comparisons that the page waits for, in order. */
    const asked: Route[] = [];
    await page.route(`**/sessions/${TREE}/diff?*`, (route) => void asked.push(route));
    const answer = async (index: number, file: string) => {
      const route = asked[index]!;
      const answered = page.waitForResponse((response) => response.request() === route.request());
      const diff = `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n-one\n+two\n`;
      const one: DiffAnswer = { filesChanged: 1, insertions: 1, deletions: 1, diff, totalBytes: 999, nextOffset: 1 };
      await route.fulfill({ json: one });
      await (await answered).finished();
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    };
    const appliedElsewhere = (id: number) =>
      hub.publish('event', { sessionId: TREE, ...event(id, 'progress', { kind: 'apply', outcome: 'applied' }) });
    const shown = () => page.locator('.file .path').allInnerTexts();

    await page.getByRole('link', { name: 'Work', exact: true }).click();
    await expect.poll(() => asked.length).toBe(1);
    appliedElsewhere(4);
    await expect.poll(() => asked.length).toBe(2);
    await answer(1, 'second.ts');
    await expect.poll(shown).toEqual(['second.ts']);
    await answer(0, 'first.ts');
    expect(await shown()).toEqual(['second.ts']);
    // What continues a comparison is not shown with a newer one.
    appliedElsewhere(5);
    await expect.poll(() => asked.length).toBe(3);
    await page.getByRole('button', { name: 'Show more files' }).click();
    await expect.poll(() => asked.length).toBe(4);
    await answer(2, 'third.ts');
    await expect.poll(shown).toEqual(['third.ts']);
    await answer(3, 'more-of-second.ts');
    expect(await shown()).toEqual(['third.ts']);
  });
}
