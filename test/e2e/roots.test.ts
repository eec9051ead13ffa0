/** Where a session works when its caller names no directory: in the folder that the client has open. */

import type { Client } from '@modelcontextprotocol/client';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ERAS } from '../harness/connect-client.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import { TOOLSETS } from '../harness/toolsets.ts';

/** That the real one works where it is started is shown with `start.default-directory`. */
const SAYS_WHERE = {
  CLAUDE_CODE_MCP_EXECUTABLE: fileURLToPath(new URL('../harness/fixtures/fake-claude.mjs', import.meta.url)),
  FAKE_CLAUDE: 'says-where',
};
const OFFERS_ROOTS = { capabilities: { roots: { listChanged: true } }, env: SAYS_WHERE };

function offer(client: Client, ...directories: string[]): { asked: number } {
  const seen = { asked: 0 };
  client.setRequestHandler('roots/list', () => {
    seen.asked++;
    return { roots: directories.map((directory) => ({ uri: pathToFileURL(directory).href })) };
  });
  return seen;
}

async function folder(h: Harness, name: string): Promise<string> {
  const directory = join(h.home, name);
  await mkdir(directory);
  return directory;
}

/** Starts a session that says where it is. */
async function whereItWorks(h: Harness, cwd?: string): Promise<string | undefined> {
  const { answer } = await h.finish(await h.begin('where', cwd === undefined ? {} : { cwd }));
  return answer?.replace('answer to: ', '');
}

describe.each(ERAS)('%s', (era) => {
  test.each(TOOLSETS)('the first root is the default directory in the %s set', async (toolset) => {
    const h = await startHarness({ era, toolset, ...OFFERS_ROOTS });
    const first = await folder(h, 'first');
    offer(h.client, first, await folder(h, 'second'));
    expect(await whereItWorks(h)).toBe(first);
  });

  const startWith = (options: HarnessOptions): Promise<Harness> => startHarness({ era, ...OFFERS_ROOTS, ...options });

  test('a caller that names a directory is heard, and the client is not asked', async () => {
    const h = await startWith({});
    const seen = offer(h.client, await folder(h, 'open'));
    expect(await whereItWorks(h, h.project)).toBe(h.project);
    expect(seen.asked).toBe(0);
  });

  test('the operator’s directories bind it', async () => {
    const h = await startWith({ args: ['--allowed-dirs', '.'] });
    const open = await folder(h, 'open');
    offer(h.client, open);
    expect(await h.fails('claude_code', { prompt: 'x' }, 'PERMISSION_DENIED')).toContain(open);
  });

  test.each([
    ['where there is none', []],
    ['where it does not exist', ['/nowhere/at/all']],
  ])('the directory of the server %s', async (_what, roots) => {
    const h = await startWith({});
    offer(h.client, ...roots);
    expect(await whereItWorks(h)).toBe(h.project);
  });
});

test('a client that never lists its roots does not hold up a start', async () => {
  const h = await startHarness({ era: 'legacy', ...OFFERS_ROOTS });
  h.client.setRequestHandler('roots/list', () => new Promise<never>(() => undefined));
  expect(await whereItWorks(h)).toBe(h.project);
});
