import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
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
}
