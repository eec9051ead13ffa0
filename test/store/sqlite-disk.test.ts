/** A disk that is slow to flush, fails to, or loses power. */

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HubRef } from '../../src/schema/store.ts';
import type { EventBounds, Store } from '../../src/store/contract.ts';
import { loadSqlite, type SqliteDatabase } from '../../src/store/sqlite/binding.ts';
import type { Flush, SqliteFile } from '../../src/store/sqlite/log.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { append, ask, event, put, request, session } from './rows.ts';
import { closedAfterwards, ref, temporaryDirectory, unexpectedWarning } from './stores.ts';

/** Few, so that pages are freed and used again. */
const BOUNDS: EventBounds = { maxEvents: 10, maxBytes: 150_000 };

interface Opened {
  readonly file: string;
  readonly store: Store;
  readonly hub: HubRef;
  readonly writer: SqliteDatabase;
}

/** With one session, `s1`. */
async function opened(flush: Flush, bounds?: EventBounds): Promise<Opened> {
  const file = path.join(await temporaryDirectory(), 'hub.db');
  let writer: SqliteDatabase | undefined;
  const onOpened = (database: SqliteDatabase): void => void (writer = database);
  const options = { file, warn: unexpectedWarning, onOpened, flush, ...(bounds && { bounds }) };
  const store = closedAfterwards(await openSqliteStore(options));
  const hub = ref(await store.acquireLease('hub-a', 15_000, {}));
  await store.write([put(session('s1', hub))], hub);
  return { file, store, hub, writer: writer! };
}

/** Stores large events until the log was moved into the database file. Returns the last one's id. */
async function fillLog({ store, hub }: Opened, wasMoved: () => boolean): Promise<number> {
  const data = 'x'.repeat(60_000);
  for (let id = 1; ; id++) {
    await store.write([append(event('s1', id, { data }))], hub);
    if (wasMoved()) return id;
    expect(id).toBeLessThan(100);
  }
}

test('a disk that takes long to flush delays what is reported, not the event loop', async () => {
  let release: () => void = () => undefined;
  let held: Promise<void> | undefined;
  const flushed: SqliteFile[] = [];
  const { store, hub, writer } = await opened(async (which) => {
    flushed.push(which);
    await held;
  });

  held = new Promise((resolve) => (release = resolve));
  flushed.length = 0;
  const done: string[] = [];
  const writing = store.write([ask(request('s1', 'r1'))], hub).then(() => done.push('written'));
  while (flushed.length === 0) await nextTurn();
  // Committed, but a power cut could still undo it.
  expect(writer.all('SELECT id FROM requests')).toEqual([{ id: 'r1' }]);
  const reading = store.request('r1').then((found) => done.push(`read ${found?.id}`));
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  expect(done).toEqual([]);
  // 1 is NORMAL: SQLite itself flushes nothing at a commit.
  expect(writer.all('PRAGMA synchronous')).toEqual([{ synchronous: 1 }]);
  release();
  await Promise.all([writing, reading]);
  expect(done.sort()).toEqual(['read r1', 'written']);

  held = undefined;
  flushed.length = 0;
  await store.write([append(event('s1', 1))], hub);
  expect(flushed).toEqual([]);
});

test('a long log is moved into the file without a flush on the event loop', async () => {
  const flushed: SqliteFile[] = [];
  const it = await opened(async (which) => void flushed.push(which));
  flushed.length = 0;
  const last = await fillLog(it, () => flushed.includes('database'));
  expect(flushed).toEqual(['log', 'database', 'log']);
  // The log was begun again: it contains only what was written since.
  expect(pagesIn(it.writer)).toBeLessThan(30);
  expect((await readFile(it.file)).length).toBeGreaterThan(60_000 * (last - 2));
  expect((await it.store.events('s1', { limit: 100 })).lastId).toBe(last);
});

test('a write that could not be flushed is refused, and its repetition does not rely on the log', async () => {
  const flushed: SqliteFile[] = [];
  let failing: SqliteFile | undefined;
  const { store, hub } = await opened(async (which) => {
    flushed.push(which);
    if (which === failing) throw new Error('EIO: i/o error, fdatasync');
  });
  failing = 'log';
  const changes = [ask(request('s1', 'r1'))];
  for (let attempt = 0; attempt < 2; attempt++) {
    await expect(store.write(changes, hub)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: /flushed.*EIO/ });
  }
  failing = undefined;
  flushed.length = 0;
  await store.write(changes, hub);
  expect(flushed).toEqual(['log', 'database', 'log']);
  flushed.length = 0;
  await store.write([ask(request('s1', 'r2'))], hub);
  expect(flushed).toEqual(['log']);
});

test('after the file could not be flushed, nothing overwrites the log that it was copied from', async () => {
  let failing: SqliteFile | undefined;
  const it = await opened(async (which) => {
    if (which === failing) throw new Error('EIO: i/o error, fdatasync');
  });
  failing = 'database';
  const refusal = { code: 'UNAVAILABLE', message: /Restart the hub/ };
  await expect(fillLog(it, () => false)).rejects.toMatchObject(refusal);
  const log = await readFile(`${it.file}-wal`);
  failing = undefined;
  await expect(it.store.write([ask(request('s1', 'r1'))], it.hub)).rejects.toMatchObject(refusal);
  await it.store.close();
  expect((await readFile(`${it.file}-wal`)).equals(log)).toBe(true);
});

test('a power cut loses nothing that was reported and damages nothing', { timeout: 60_000 }, async () => {
  const random = seeded(7);
  const directory = await temporaryDirectory();
  const openSqlite = await loadSqlite();
  const suffix = { log: '-wal', database: '' };
  const onDisk: Record<SqliteFile, Buffer> = { log: Buffer.alloc(0), database: Buffer.alloc(0) };
  let reported = 0;
  let cuts = 0;
  let isRunning = false;
  let moves = 0;
  let lastFlushed: SqliteFile = 'log';
  const current = (which: SqliteFile): Promise<Buffer> => readFile(`${file}${suffix[which]}`);

  const cutPower = async (): Promise<void> => {
    const image = path.join(directory, `cut-${++cuts}`, 'hub.db');
    await mkdir(path.dirname(image));
    for (const which of ['log', 'database'] as const) {
      await writeFile(`${image}${suffix[which]}`, mixed(onDisk[which], await current(which), random));
    }
    const database = openSqlite(image);
    expect(database.all('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    const [found] = database.all('SELECT count(*) AS count FROM requests');
    expect(Number(found?.['count'])).toBeGreaterThanOrEqual(reported);
    database.close();
    await rm(path.dirname(image), { recursive: true });
  };
  const { file, store, hub } = await opened(async (which) => {
    if (!isRunning) return;
    const isMoving = which !== lastFlushed || which === 'database';
    lastFlushed = which;
    if (which === 'database') moves++;
    for (let n = 0; n < (isMoving ? 7 : 1); n++) await cutPower();
    onDisk[which] = await current(which);
  }, BOUNDS);
  for (const which of ['log', 'database'] as const) onDisk[which] = await current(which);
  isRunning = true;

  const ids = Array.from({ length: 8 }, (_, n) => `t${n}`);
  await store.write(
    ids.map((id) => put(session(id, hub))),
    hub,
  );
  const lastIds = new Map<string, number>();
  for (let n = 0; moves < 3; n++) {
    const id = ids[Math.floor(random() * ids.length)]!;
    const next = (lastIds.get(id) ?? 0) + 1;
    lastIds.set(id, next);
    await store.write([append(event(id, next, { data: 'x'.repeat(random() * 40_000) }))], hub);
    if (n % 32 !== 0) continue;
    await store.write([ask(request(id, `r${n}`))], hub);
    reported++;
  }
  isRunning = false;
  await store.close();
  expect(cuts).toBeGreaterThan(40);
});

function pagesIn(writer: SqliteDatabase): number {
  return Number(writer.all('PRAGMA wal_checkpoint(PASSIVE)')[0]?.['log']);
}

/** Any of the pages written since the last flush may be on the disk: any at random, or all up to one, or all after it. */
function mixed(before: Buffer, after: Buffer, random: () => number): Buffer {
  const image = Buffer.from(after);
  const pageOf = (content: Buffer, at: number): Buffer => content.subarray(at, at + 4096);
  const changed: number[] = [];
  for (let at = 0; at < after.length; at += 4096) if (!pageOf(before, at).equals(pageOf(after, at))) changed.push(at);
  const [order, cut] = [random(), changed[Math.floor(random() * changed.length)] ?? 0];
  for (const at of changed) {
    const isOnDisk = order < 0.3 ? random() < 0.5 : order < 0.6 ? at < cut : at >= cut;
    if (isOnDisk) continue;
    const page = pageOf(image, at);
    page.fill(0);
    page.set(before.subarray(at, at + page.length));
  }
  return image;
}

/** https://en.wikipedia.org/wiki/Xorshift */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
