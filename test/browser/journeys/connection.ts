import { expect, test } from 'vitest';
import { gate, text, tool } from '../../../src/scripted-model/reply.ts';
import { cardOf, clickButton, sendMessage, waitForState, type JourneyWorld } from '../journey-world.ts';
import { signInWith, waitUntilConnected } from '../page-steps.ts';

export function connection(world: JourneyWorld): void {
  test('an open page survives a killed hub and an hour offline: it catches up without a reload and without a gap', async () => {
    const { hub } = world;
    const write = tool('Write', { file_path: world.file('later.txt'), content: 'later\n' });
    // Claude Code goes on waiting while the hub is away.
    hub.model.on('Wait for me').reply(write, text('Written at last.'));
    const { page, context } = await world.open();
    await page.clock.install();
    await page.goto(hub.url);
    await signInWith(page, hub.admin);
    const session = await hub.startSession({
      prompt: 'Wait for me',
      title: 'Patient',
      enableFileCheckpointing: true,
    });
    await cardOf(page, 'Patient').getByText('later.txt').first().waitFor();
    await page.evaluate('window.isTheSamePage = true');
    await hub.kill();
    const offline = page.getByRole('status').getByText(/Offline since/);
    await offline.waitFor();
    await clickButton(page, 'Patient', 'Allow');
    await cardOf(page, 'Patient').getByText('Trying again').waitFor();
    await hub.start();
    await cardOf(page, 'Patient')
      .getByText(/Allowed by you/)
      .waitFor();
    await waitUntilConnected(page);
    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await page.getByText('Written at last.').waitFor();
    await waitForState(page, 'Idle');

    const steps = Array.from({ length: 5 }, (_, index) =>
      text(`Step ${index + 1} of five.`).tool('Bash', { command: `echo ${index + 1}` }),
    );
    const held = gate(steps[0]!);
    hub.model.on('Go on without me').reply(held, ...steps.slice(1), text('Five steps are done.'));
    await sendMessage(page, 'Go on without me');
    await held.arrived;
    await waitForState(page, 'Working');
    await context.setOffline(true);
    // Data that still arrives restarts the page's silence timer, so one jump may not be enough.
    await expect
      .poll(
        async () => {
          await page.clock.fastForward('01:00:00');
          return (await page.getByRole('status').allInnerTexts()).join();
        },
        { timeout: 30_000, interval: 1_000 },
      )
      .toContain('Offline since');
    held.release();
    await expect
      .poll(async () => (await hub.api<{ state: string }>('GET', `sessions/${session.sessionId}`)).state, {
        timeout: 20_000,
      })
      .toBe('idle');
    expect(await page.getByText('Step 1 of five.').count()).toBe(0);
    await context.setOffline(false);
    await page.getByText('Five steps are done.').waitFor();
    await waitForState(page, 'Idle');
    await waitUntilConnected(page);
    for (const step of [1, 2, 3, 4, 5]) expect(await page.getByText(`Step ${step} of five.`).count()).toBe(1);
    expect(await page.evaluate('window.isTheSamePage')).toBe(true);

    // The next hub did not see what was written, and would not know whose changes it takes back: it says so.
    await hub.kill();
    await hub.start();
    await waitUntilConnected(page);
    await page.keyboard.press('Home');
    await page.getByRole('button', { name: 'Rewind files to here' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Rewind files' });
    await dialog.getByText('Nothing to restore.').waitFor();
    await dialog.getByText(/later\.txt: this server did not see the session write it.*restore it yourself/).waitFor();
    expect(await dialog.getByRole('button', { name: 'Restore them' }).count()).toBe(0);
  });
}
