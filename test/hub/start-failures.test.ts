/** A hub that cannot use its state directory: one line that says why and what to do, and nothing is damaged. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished, test } from 'vitest';
import { MIGRATIONS } from '../../src/store/sql/migrate.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { runCommand } from '../cli/run-command.ts';
import { createHome } from '../harness/isolated-home.ts';
import { canMount, mountSmallDisk } from '../harness/small-disk.ts';

async function startHub(prepare: (state: string) => unknown): Promise<{ state: string; stderr: string }> {
  const home = await createHome();
  onTestFinished(() => home.remove());
  const state = join(home.stateDir, 'claude-code-mcp');
  mkdirSync(state, { mode: 0o700 });
  await prepare(state);
  const { code, stdout, stderr } = await runCommand(['hub', '--listen', '127.0.0.1:0'], {
    env: home.env(),
    cwd: home.project,
  });
  expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^claude-code-mcp: .+\n$/);
  return { state, stderr };
}

it('ends at once when it may not listen where it is told to', async () => {
  const home = await createHome();
  onTestFinished(() => home.remove());
  const began = performance.now();
  const { code, stderr } = await runCommand(['hub', '--listen', '0.0.0.0:0'], { env: home.env(), cwd: home.project });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('0.0.0.0 is not loopback') });
  // It has started its keeper by then, and used to stay for as long as it would have waited for that.
  expect(performance.now() - began).toBeLessThan(8_000);
});

it('refuses a store of a newer version', async () => {
  const migrations = [...MIGRATIONS, 'CREATE TABLE later (id TEXT PRIMARY KEY)'];
  const { stderr } = await startHub(async (state) => {
    const store = await openSqliteStore({ file: join(state, 'hub.db'), warn: () => undefined, migrations });
    await store.close();
  });
  expect(stderr).toContain('start a newer claude-code-mcp, or use another store');
});

it('refuses an empty file beside a log that is not, and keeps the log', async () => {
  const { state, stderr } = await startHub((at) => {
    writeFileSync(join(at, 'hub.db'), '');
    writeFileSync(join(at, 'hub.db-wal'), 'what was stored last');
  });
  expect(stderr).toContain('hub.db is empty or missing, but its log');
  expect(readFileSync(join(state, 'hub.db-wal'), 'utf8')).toBe('what was stored last');
});

it('names a directory in the place of its file', async () => {
  const { state, stderr } = await startHub((at) => mkdirSync(join(at, 'hub.db')));
  expect(stderr).toContain(`${join(state, 'hub.db')}: a directory is where a file should be. Move it away`);
});

it('names a file in the place of its directory', async () => {
  const { state, stderr } = await startHub((at) => {
    rmSync(at, { recursive: true });
    writeFileSync(at, '');
  });
  expect(stderr).toContain(`${state}: a file is where a directory should be. Move it away`);
});

// Skipped unless run by root on Linux, where a file system can be mounted.
test.runIf(canMount).each([
  ['a full disk', 'size=64k', /: the disk is full\. Free some space/],
  ['a read-only directory', 'size=64k,ro', /: the file system is read-only\. Make it writable/],
])('%s is named', async (_what, options, expected) => {
  const { state, stderr } = await startHub((at) => {
    const disk = mountSmallDisk(at, options);
    onTestFinished(() => disk.unmount());
    if (!options.includes('ro')) disk.fill();
  });
  expect(stderr).toMatch(expected);
  expect(stderr).toContain(dirname(state));
});
