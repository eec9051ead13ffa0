import { expect, test } from 'vitest';
import { card, show } from '../page-world.ts';

const SUGGESTED = { decision: 'allow' as const, tool: 'Bash', match: 'npm test', directory: '/work/app' };

export function rules(): void {
  test('are made beside Allow, with what people decided so far', async () => {
    const { page, hub } = await show((data) => {
      data.requests[0]!.suggestedRule = SUGGESTED;
    });
    const { requestId } = hub.data.requests[0]!;
    await card(page, requestId).getByRole('button', { name: 'Always in this repository…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('and denied 1').waitFor();
    await dialog.getByText('Denied').first().waitFor();
    await dialog.getByText('own code').waitFor();
    await dialog.getByLabel('Match').fill('npm test -- --run');
    await dialog.getByLabel('Note').fill('the tests');
    // Replayed as it is edited.
    await expect
      .poll(() => hub.calls.some(({ path, body }) => path === 'rules/replay' && JSON.stringify(body).includes('--run')))
      .toBe(true);
    await dialog.getByRole('button', { name: 'Create rule' }).click();
    await expect.poll(() => dialog.count()).toBe(0);
    const made = hub.calls.find(({ method, path }) => method === 'POST' && path === 'rules');
    expect(made?.body).toEqual({ ...SUGGESTED, match: 'npm test -- --run', note: 'the tests', requestId });
    // The request itself is still to be answered.
    expect(await card(page, requestId).getByRole('button', { name: 'Allow', exact: true }).count()).toBe(1);
  });

  test('are listed with their use, and switched off, changed and removed', async () => {
    const { page, hub } = await show(undefined, {}, '#/rules');
    await page.getByText('used 3 times').waitFor();
    await page.getByText('its author lost the role').waitFor();
    const last = (method: string): unknown =>
      hub.calls.findLast((call) => call.method === method && call.path === 'rules/r1')?.body;
    await page.getByRole('button', { name: 'Disable Bash(npm test)' }).click();
    await expect.poll(() => last('PATCH')).toEqual({ enabled: false });
    await page.getByRole('button', { name: 'Edit Bash(npm test)' }).click();
    await page.getByRole('dialog').getByLabel('Match').fill('npm run lint');
    await page.getByRole('button', { name: 'Save rule' }).click();
    await expect.poll(() => last('PATCH')).toMatchObject({ match: 'npm run lint', directory: '/work/app' });
    await page.getByRole('button', { name: 'Remove Bash(npm test)' }).click();
    await expect
      .poll(() => hub.calls.some(({ method, path }) => method === 'DELETE' && path === 'rules/r1'))
      .toBe(true);
    await page.getByText('reading').click();
    await page.getByRole('region', { name: 'Replay' }).waitFor();
  });
}
