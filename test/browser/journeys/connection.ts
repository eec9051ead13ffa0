import { expect, test } from 'vitest';
import { gate, text, tool } from '../../../src/scripted-model/reply.ts';
import { cardOf, connected, press, send, signInWith, state, type JourneyWorld } from '../journey-world.ts';

export function connection(world: JourneyWorld): void {
  test('a hub that is killed and comes back loses nothing on an open page; a laptop closed for an hour catches up, without a reload and without a gap', async () => {
    const { hub } = world;
    const write = tool('Write', { file_path: world.file('later.txt'), content: 'later\n' });
    hub.model.on('Wait for me').reply(write);
    // Claude Code is started again, and told what was decided while it was away.
    hub.model.on('was allowed').reply(write, text('Written at last.'));
    const { page, context } = await world.open();
    await page.clock.install();
    await page.goto(hub.url);
    await signInWith(page, hub.admin);
    const session = await hub.begin({ prompt: 'Wait for me', title: 'Patient' });
    await cardOf(page, 'Patient').getByText('later.txt').first().waitFor();
    await page.evaluate('window.isTheSamePage = true');
    await hub.kill();
    const offline = page.getByRole('status').getByText(/Offline since/);
    await offline.waitFor();
    await press(page, 'Patient', 'Allow');
    await cardOf(page, 'Patient').getByText('Trying again').waitFor();
    await hub.start();
    await cardOf(page, 'Patient')
      .getByText(/Allowed by you/)
      .waitFor();
    await connected(page);
    await page.goto(`${hub.url}#/sessions/${session.sessionId}`);
    await page.getByText('Written at last.').waitFor();
    await state(page, 'Idle');

    const steps = Array.from({ length: 5 }, (_, index) =>
      text(`Step ${index + 1} of five.`).tool('Bash', { command: `echo ${index + 1}` }),
    );
    const held = gate(steps[0]!);
    hub.model.on('Go on without me').reply(held, ...steps.slice(1), text('Five steps are done.'));
    await send(page, 'Go on without me');
    await held.arrived;
    await state(page, 'Working');
    await context.setOffline(true);
    // Data that still arrives counts as a sign of life: the page then needs another period of silence to notice.
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
    await state(page, 'Idle');
    await connected(page);
    for (const step of [1, 2, 3, 4, 5]) expect(await page.getByText(`Step ${step} of five.`).count()).toBe(1);
    expect(await page.evaluate('window.isTheSamePage')).toBe(true);
  });
}
