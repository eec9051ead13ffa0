import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { afterThisTest, temporaryDirectory, withPostgres } from '../store/stores.ts';
import { packagedPrograms, startPostgres } from './postgres.ts';

const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)(
  'root starts it from a checkout and a temporary directory that no one else can enter',
  async () => {
    const { initdb } = await packagedPrograms();
    // Both are created with mode 0700.
    const checkout = await temporaryDirectory();
    await promisify(execFile)('cp', ['-R', path.dirname(path.dirname(initdb)), path.join(checkout, 'native')]);
    const bin = path.join(checkout, 'native', 'bin');
    vi.stubEnv('TMPDIR', await temporaryDirectory());
    afterThisTest(async () => vi.unstubAllEnvs());
    const programs = { initdb: path.join(bin, 'initdb'), postgres: path.join(bin, 'postgres') };
    const postgres = await startPostgres(['-c', 'fsync=off'], async () => programs);
    afterThisTest(() => postgres.remove());
    const { rows } = await withPostgres(postgres.url, (client) => client.query('SELECT 1 AS one'));
    expect(rows).toEqual([{ one: 1 }]);
  },
);

test('one that cannot start fails only its caller, and says why', async () => {
  const missing = path.join(await temporaryDirectory(), 'native', 'bin', 'initdb');
  const starting = startPostgres([], async () => ({ initdb: missing, postgres: missing }));
  await expect(starting).rejects.toThrow(/^Postgres cannot start: .*native/s);
});
