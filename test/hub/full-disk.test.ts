/** The disk under the hub's state fills up while it runs, and has space again later. */

import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import { canMount, mountSmallDisk, type SmallDisk } from '../harness/small-disk.ts';

// Skipped unless run by root on Linux, where a file system can be mounted.
test.runIf(canMount)('a full disk is UNAVAILABLE and not ready, but alive, until there is space again', async () => {
  let disk: SmallDisk | undefined;
  const h = await startHarness({
    hub: {},
    prepare: ({ stateDir }) => void (disk = mountSmallDisk(join(stateDir, 'claude-code-mcp'), 'size=8m')),
  });
  // Before the harness removes its home.
  onTestFinished(() => disk?.unmount());
  const { url } = readHubRecord(join(h.stateDir, 'claude-code-mcp'))!;
  const status = async (path: string): Promise<[number, unknown]> => {
    const response = await fetch(url + path);
    return [response.status, await response.json()];
  };
  expect(await status('/readyz')).toEqual([200, { status: 'ready' }]);

  disk!.fill();
  await eventually(async () => (await status('/readyz'))[0] === 503, { what: 'the hub is not ready' });
  expect(await status('/readyz')).toEqual([
    503,
    { status: 'unavailable', reason: 'The store cannot be written; the log of the hub says why.' },
  ]);
  expect(await status('/healthz')).toEqual([200, { status: 'ok' }]);
  h.model.on('too early').always(text('not told'));
  const refused = await h.fails('claude_code', { prompt: 'too early' }, 'UNAVAILABLE');
  expect(refused).toMatch(/claude-code-mcp\/hub\.db is full: no space left on the disk/);

  disk!.free();
  await eventually(async () => (await status('/readyz'))[0] === 200, { what: 'the hub is ready again' });
  h.model.on('now').reply(text('told'));
  expect(await h.finish(await h.begin('now'))).toMatchObject({ answer: 'told' });
});
