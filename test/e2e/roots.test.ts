/** Where a session works when its caller names no directory: in the folder that the client has open. */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ERAS } from '../harness/connect-client.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { standInEnv } from './stand-in.ts';

/** `start.default-directory` shows that the real Claude Code works where it is started. */
const OFFERS_ROOTS = { capabilities: { roots: { listChanged: true } }, env: standInEnv('says-where') };

async function offer({ client, era }: Harness, ...directories: string[]): Promise<{ asked: number }> {
  const seen = { asked: 0 };
  client.setRequestHandler('roots/list', () => {
    seen.asked++;
    return { roots: directories.map((directory) => ({ uri: pathToFileURL(directory).href })) };
  });
  // The server may know the roots of an earlier test. In the modern era it asks with each call.
  if (era === 'legacy') await client.notification({ method: 'notifications/roots/list_changed' });
  return seen;
}

async function folder(h: Harness, name: string): Promise<string> {
  const directory = join(h.home, name);
  await mkdir(directory);
  return directory;
}

/** Starts a session that reports its directory. */
async function whereItWorks(h: Harness, cwd?: string): Promise<string | undefined> {
  const { answer } = await h.finish(await h.begin('where', cwd === undefined ? {} : { cwd }));
  return answer?.replace('answer to: ', '');
}

describe.each(ERAS)('%s', (era) => {
  const harness = shareHarness({ era, ...OFFERS_ROOTS });

  test('the first root is the default directory', async () => {
    const h = harness();
    const first = await folder(h, 'first');
    await offer(h, first, await folder(h, 'second'));
    expect(await whereItWorks(h)).toBe(first);
  });

  test('a caller can name a directory, and then the client is not asked', async () => {
    const h = harness();
    const seen = await offer(h, await folder(h, 'open'));
    expect(await whereItWorks(h, h.project)).toBe(h.project);
    expect(seen.asked).toBe(0);
  });

  test.each([
    ['there is no root', []],
    ['the root does not exist', ['/nowhere/at/all']],
  ])('the server’s own directory is used when %s', async (_when, roots) => {
    const h = harness();
    const seen = await offer(h, ...roots);
    expect(await whereItWorks(h)).toBe(h.project);
    expect(seen.asked).toBeGreaterThan(0);
  });

  // Neither the toolset nor the operator's rules change how the client is asked: one era each is enough.
  test.runIf(era === 'legacy')('the first root is the default directory in the explicit toolset too', async () => {
    const h = await startHarness({ era, toolset: 'explicit', ...OFFERS_ROOTS });
    const first = await folder(h, 'first');
    await offer(h, first, await folder(h, 'second'));
    expect(await whereItWorks(h)).toBe(first);
  });

  test.runIf(era === 'modern')('ALLOWED_DIRS applies to roots', async () => {
    const h = await startHarness({ era, ...OFFERS_ROOTS, args: ['--allowed-dirs', '.'] });
    const open = await folder(h, 'open');
    await offer(h, open);
    expect(await h.fails('claude_code', { prompt: 'x' }, 'PERMISSION_DENIED')).toContain(open);
  });

  // In the modern era the server asks within the call.
  test.runIf(era === 'legacy')('a client that never lists its roots does not delay a start', async () => {
    const h = harness();
    h.client.setRequestHandler('roots/list', () => new Promise<never>(() => undefined));
    await h.client.notification({ method: 'notifications/roots/list_changed' });
    expect(await whereItWorks(h)).toBe(h.project);
  });
});
