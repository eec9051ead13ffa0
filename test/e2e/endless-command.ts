/** A session whose command runs until it is stopped. */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';

/** Makes a file when it has begun. */
export const ENDLESS = 'touch begun; until [ -f never ]; do sleep 0.1; done';

export async function waitUntilBegun(h: Harness): Promise<void> {
  const begun = join(h.project, 'begun');
  await eventually(() => existsSync(begun), { what: 'the command is running' });
  // The next command makes it again.
  rmSync(begun);
}

export async function startEndless(h: Harness): Promise<string> {
  h.model.on('run forever').reply(tool('Bash', { command: ENDLESS, description: 'endless' }));
  const sessionId = await h.begin('run forever', { allowedTools: ['Bash'] });
  await waitUntilBegun(h);
  return sessionId;
}

export async function runningCommands(h: Harness): Promise<string[]> {
  return (await h.processes()).map(({ command }) => command).filter((command) => command.includes('until [ -f never'));
}
