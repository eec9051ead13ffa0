/** What applies only to a database in a file: modes, damage, locks, a full disk, a year of use. */

import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { HubRef } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { MIGRATIONS } from '../../src/store/sql/migrate.ts';
import { loadSqlite, type SqliteDatabase } from '../../src/store/sqlite/binding.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/open.ts';
import { manualNow } from './manual-now.ts';
import { append, ask, event, put, request, session, settle, T0 } from './rows.ts';
import { afterThisTest, closedAfterwards, temporaryDirectory, unexpectedWarning } from './stores.ts';

const DAY = 86_400_000;

async function openAt(file: string, options: Partial<SqliteStoreOptions> = {}): Promise<Store> {
  return closedAfterwards(await openSqliteStore({ file, warn: unexpectedWarning, ...options }));
}

async function hubOf(store: Store): Promise<HubRef> {
  const { hub, fence } = await store.acquireLease('hub-a', 15_000, {});
  return { hub, fence };
}

const hubFile = async (): Promise<string> => path.join(await temporaryDirectory(), 'state', 'hub.db');

test.skipIf(process.platform === 'win32')('only the owner can read the file, its log and its directory', async () => {
  const file = await hubFile();
  await mkdir(path.dirname(file), { mode: 0o700 });
  await writeFile(file, '', { mode: 0o644 });
  const store = await openAt(file);
  await store.write([put(session('s1', await hubOf(store)))], { hub: 'hub-a', fence: 1 });
  const modes = await Promise.all(
    [file, `${file}-wal`, `${file}-shm`].map(async (part) => (await stat(part)).mode & 0o777),
  );
  expect(modes).toEqual([0o600, 0o600, 0o600]);
  const fresh = await hubFile();
  await openAt(fresh);
  expect((await stat(path.dirname(fresh))).mode & 0o777).toBe(0o700);
});

test('everything survives a restart, and positions and fencing numbers continue', async () => {
  const file = await hubFile();
  const before = await openAt(file);
  const hub = await hubOf(before);
  await before.write([put(session('s1', hub)), append(event('s1', 1)), ask(request('s1', 'r1'))], hub);
  const { entries, last } = await before.feed({ after: 0, limit: 9 });
  await before.close();
  const after = await openAt(file);
  expect(await after.feed({ after: 0, limit: 9 })).toEqual({ entries, last });
  const restarted = await hubOf(after);
  expect(restarted.fence).toBe(hub.fence + 1);
  await after.claimSessions(restarted, ['s1']);
  await after.write([append(event('s1', 2))], restarted);
  expect((await after.feed({ after: last, limit: 9 })).entries.map(({ kind, seq }) => [kind, seq])).toEqual([
    ['session', last + 1],
    ['event', last + 2],
  ]);
});

test('hubs started at once on an empty directory share one store', async () => {
  const file = await hubFile();
  const stores = await Promise.all(Array.from({ length: 5 }, () => openAt(file)));
  const keys = await Promise.all(stores.map((store, index) => store.ensureSetting('key', String(index))));
  expect(new Set(keys).size).toBe(1);
});

test('a store of a newer version is refused with a clear message and left unchanged', async () => {
  const file = await hubFile();
  const newer = { migrations: [...MIGRATIONS, 'CREATE TABLE later (id TEXT PRIMARY KEY)'] };
  const store = await openAt(file, newer);
  await store.ensureSetting('key', 'kept');
  await store.close();
  const refused = openAt(file);
  await expect(refused).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await expect(refused).rejects.toThrow(
    new RegExp(`version ${MIGRATIONS.length + 1}, this program knows versions up to ${MIGRATIONS.length}\\.`),
  );
  expect(await (await openAt(file, newer)).setting('key')).toBe('kept');
});

test('a failed migration leaves the store at its previous version', async () => {
  const file = await hubFile();
  await (await openAt(file)).close();
  const broken = [...MIGRATIONS, 'CREATE TABLE half (id TEXT); CREATE TABLE half (id TEXT)'];
  await expect(openAt(file, { migrations: broken })).rejects.toThrow(/half/);
  await (await openAt(file)).close();
  await openAt(file, { migrations: [...MIGRATIONS, 'CREATE TABLE half (id TEXT)'] });
});

test.each<[string, (file: string) => Promise<void>]>([
  ['is not a database', (file) => writeFile(file, 'garbage '.repeat(2_000))],
  ['was truncated', (file) => truncate(file, 8_192)],
  [
    'has overwritten pages in the middle',
    async (file) => {
      const bytes = await readFile(file);
      bytes.fill(0x5a, 4096 * 5, 4096 * 9);
      await writeFile(file, bytes);
    },
  ],
  ['was found damaged while in use', (file) => writeFile(`${file}-damaged`, '')],
])('a file that %s is moved aside, with a warning that names it, and a new one is created', async (_what, damage) => {
  const file = await hubFile();
  const store = await openAt(file);
  const hub = await hubOf(store);
  await store.write(
    [put(session('s1', hub)), ...Array.from({ length: 200 }, (_, n) => append(event('s1', n + 1)))],
    hub,
  );
  await store.close();
  await damage(file);
  const damaged = await readFile(file);

  const warnings: string[] = [];
  const fresh = await openAt(file, { warn: (line) => warnings.push(line), now: () => T0 });
  expect(await fresh.session('s1')).toBeUndefined();
  await fresh.ensureSetting('key', 'works');
  const aside = `${file}.damaged-2027-01-15T08-00-00-000Z`;
  expect(warnings).toEqual([expect.stringContaining(aside)]);
  // Opening a file may change a counter in its header.
  expect((await readFile(aside)).subarray(100).equals(damaged.subarray(100))).toBe(true);
  await fresh.close();
  expect(await (await openAt(file)).setting('key')).toBe('works');
  expect(existsSync(`${file}-damaged`)).toBe(false);
});

test('a full disk fails the whole write, wakes no subscriber, and does not replace the store', async () => {
  let writer: SqliteDatabase | undefined;
  const store = await openAt(await hubFile(), { onOpened: (database) => (writer = database) });
  const hub = await hubOf(store);
  await store.write([put(session('s1', hub)), append(event('s1', 1))], hub);
  const { last } = await store.feed({ after: 0, limit: 9 });
  let wakeUps = 0;
  store.subscribe(() => wakeUps++);

  const pages = Number(writer!.all('PRAGMA page_count')[0]!['page_count']);
  writer!.exec(`PRAGMA max_page_count = ${pages + 4}`);
  const large = [ask(request('s1', 'r1')), append(event('s1', 2, { data: 'x'.repeat(200_000) }))];
  for (let attempt = 0; attempt < 3; attempt++) {
    await expect(store.write(large, hub)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: /no space left/ });
  }
  expect(await store.feed({ after: last, limit: 9 })).toEqual({ entries: [], last });
  expect(await store.request('r1')).toBeUndefined();
  expect(wakeUps).toBe(0);
  await store.write([append(event('s1', 2, { data: 'small' }))], hub);

  writer!.exec('PRAGMA max_page_count = 1000000');
  await store.write([ask(request('s1', 'r1')), append(event('s1', 3, { data: 'x'.repeat(200_000) }))], hub);
  expect((await store.events('s1', { limit: 9 })).lastId).toBe(3);
});

test('a file locked by another process can be read; a write waits without blocking, then fails with the reason', async () => {
  const file = await hubFile();
  const store = await openAt(file, { lockWaitMs: 300 });
  const hub = await hubOf(store);
  const other = (await loadSqlite())(file);
  afterThisTest(async () => other.close());

  other.exec('BEGIN IMMEDIATE');
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 10);
  const refused = store.write([put(session('s1', hub))], hub);
  expect(await store.session('s1')).toBeUndefined();
  await expect(refused).rejects.toMatchObject({ code: 'UNAVAILABLE', message: /locked by another process/ });
  clearInterval(ticking);
  expect(ticks).toBeGreaterThan(5);

  const waiting = store.write([put(session('s1', hub))], hub);
  other.exec('COMMIT');
  await waiting;
  expect(await store.session('s1')).toBeDefined();
});

test.skipIf(process.platform === 'win32')(
  'a read-only directory gives a clear error, until it is writable again',
  async () => {
    const directory = await temporaryDirectory();
    await chmod(directory, 0o555);
    const file = path.join(directory, 'hub.db');
    await asOrdinaryUser(async () => {
      await expect(openAt(file)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining(file) });
    });
    await chmod(directory, 0o777);
    await asOrdinaryUser(async () => {
      const store = await openAt(file);
      await store.ensureSetting('key', 'value');
      await store.close();
    });
    const notADirectory = path.join(directory, 'file');
    await writeFile(notADirectory, '');
    await expect(openAt(path.join(notADirectory, 'hub.db'))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  },
);

test('over a year of use, the file grows no larger than a month needs', async () => {
  const clock = manualNow();
  const file = await hubFile();
  const store = await openAt(file, { now: clock.now });
  const hub = await hubOf(store);
  const sizes: number[] = [];
  for (let day = 0; day < 365; day++) {
    for (const id of [`d${day}-a`, `d${day}-b`]) {
      const [at, asked] = [clock.now(), request(id, `r-${id}`)];
      await store.write(
        [
          put(session(id, hub, { createdAt: at, lastActiveAt: at })),
          ...Array.from({ length: 30 }, (_, n) => append(event(id, n + 1, { data: 'x'.repeat(800) }))),
          ask(asked),
          settle(asked, { decision: 'allow', by: 'local', source: 'human', at }),
        ],
        hub,
      );
    }
    clock.advance(DAY);
    while ((await store.forget({ before: clock.now() - 30 * DAY, limit: 50 })).more);
    sizes.push(await sizeOf(file));
  }
  expect((await store.sessions({ limit: 1000 })).items.length).toBeLessThanOrEqual(62);
  expect(Math.max(...sizes.slice(100))).toBeLessThan(1.3 * Math.max(...sizes.slice(0, 60)));
});

async function sizeOf(file: string): Promise<number> {
  const directory = path.dirname(file);
  const files = await Promise.all((await readdir(directory)).map((name) => stat(path.join(directory, name))));
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Root could write even to a read-only directory. */
async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return work();
  process.seteuid?.(65534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}
