/** The store: how long a request takes to store, how fast events are stored, and how fast a large store is. */

import { mkdtemp, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Change, HubRef, StoredSession } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { startPostgres } from '../../test/harness/postgres.ts';
import { interleaved, median, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const SESSIONS = 10_000;
const EVENTS_EACH = 200;
const EVENTS_PER_BATCH = 20;
const SESSIONS_PER_WRITE = 20;

export async function storeRows(): Promise<Row[]> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-bench-store-'));
  const postgres = await startPostgres();
  const file = path.join(directory, 'hub.db');
  const openSqlite = (): Promise<Store> => openSqliteStore({ file, warn: console.error });
  const stores = { sqlite: await openSqlite(), postgres: await openPostgresStore(postgres) };
  try {
    const rows = [await requestRow(stores), await eventsRow(stores)];
    const newest = await fill(stores.sqlite);
    await stores.sqlite.close();
    const openMs: number[] = [];
    for (let n = 0; n < 5; n++) {
      openMs.push(
        await timed(async () => {
          stores.sqlite = await openSqlite();
          await stores.sqlite.session(newest);
        }),
      );
      await stores.sqlite.close();
    }
    stores.sqlite = await openSqlite();
    return [...rows, ...(await largeRows(stores.sqlite, median(openMs), (await stat(file)).size))];
  } finally {
    for (const store of Object.values(stores)) await store.close();
    await postgres.remove();
    await rm(directory, { recursive: true, force: true });
  }
}

type Stores = Readonly<Record<Store['kind'], Store>>;

async function requestRow(stores: Stores): Promise<Row> {
  const opening = async (store: Store): Promise<() => Promise<number>> => {
    const hub = await hubOf(store);
    await store.write([put(row('asks', hub, 0))], hub);
    let n = 0;
    return () => {
      const id = String(++n);
      const ask = { toolName: 'Bash', input: { command: 'npm test', description: 'x'.repeat(400) } };
      const request = { id: `r${id}`, sessionId: 'asks', kind: 'permission' as const, ask, createdAt: Date.now() };
      const changes: Change[] = [
        put(row('asks', hub, n)),
        { type: 'request.open', request },
        { type: 'event.append', event: event('asks', n, true) },
      ];
      return timed(() => store.write(changes, hub));
    };
  };
  const [sqlite, postgres] = [await opening(stores.sqlite), await opening(stores.postgres)];
  const times = await interleaved(200, { sqlite, postgres });
  const [sqliteMs, postgresMs] = [median(times.sqlite), median(times.postgres)];
  return {
    what: 'a request is stored before it is shown',
    target: 'at most 3 ms with SQLite, 8 ms with Postgres',
    measured: `${sqliteMs.toFixed(2)} ms, ${postgresMs.toFixed(2)} ms`,
    reached: sqliteMs <= 3 && postgresMs <= 8,
    numbers: { sqliteMs: round(sqliteMs, 3), postgresMs: round(postgresMs, 3) },
  };
}

async function eventsRow(stores: Stores): Promise<Row> {
  const perSecond: Record<string, number> = {};
  for (const [kind, store] of Object.entries(stores)) {
    const hub = await hubOf(store);
    await store.write([put(row('busy', hub, 0))], hub);
    const batches = 200;
    const ms = await timed(async () => {
      for (let batch = 0; batch < batches; batch++) await store.write(eventsOf('busy', batch * EVENTS_PER_BATCH), hub);
    });
    perSecond[kind] = round((batches * EVENTS_PER_BATCH * 1000) / ms);
  }
  const shown = Object.entries(perSecond).map(([kind, count]) => `${count.toLocaleString('en-US')} ${kind}`);
  return {
    what: `events stored a second, one writer, ${EVENTS_PER_BATCH} to a write`,
    target: '',
    measured: shown.join(', '),
    reached: undefined,
    numbers: perSecond,
  };
}

/** Returns the id of the session that was last active. */
async function fill(store: Store): Promise<string> {
  const hub = await hubOf(store);
  const idOf = (n: number): string => `session-${String(n).padStart(5, '0')}`;
  for (let first = 0; first < SESSIONS; first += SESSIONS_PER_WRITE) {
    const some = Array.from({ length: SESSIONS_PER_WRITE }, (_, n) => first + n);
    const changes = some.flatMap((n) => [put(row(idOf(n), hub, n)), ...eventsOf(idOf(n), 0, EVENTS_EACH)]);
    await store.write(changes, hub);
  }
  return idOf(SESSIONS - 1);
}

async function largeRows(store: Store, openMs: number, bytes: number): Promise<Row[]> {
  const times: Record<string, number> = {};
  const measure = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const each: number[] = [];
    for (let n = 0; n < 20; n++) each.push(await timed(work));
    times[name] = round(median(each), 2);
  };
  await measure('list', () => store.sessions({ limit: 50 }));
  await measure('own', () => store.sessions({ limit: 50, principal: 'p7', tags: ['idle'] }));
  await measure('search', () => store.sessions({ limit: 50, search: 'project-77' }));
  await measure('nothing found', () => store.sessions({ limit: 50, search: 'not there' }));
  await measure('inbox', () => store.inbox({ limit: 50 }));
  await measure('events', () => store.events('session-05000', { limit: 200 }));
  const slowest = Math.max(...Object.values(times));
  const size = `${SESSIONS.toLocaleString('en-US')} sessions with ${EVENTS_EACH} events each in SQLite`;
  return [
    {
      what: `${size}: opened, first answer`,
      target: 'under 1 s',
      measured: `${openMs.toFixed(0)} ms (${Math.round(bytes / 2 ** 20)} MB)`,
      reached: openMs < 1000,
      numbers: { openMs: round(openMs, 1), bytes },
    },
    {
      what: `${size}: listed, searched, inbox`,
      target: 'under 100 ms, which is how long the event loop waits',
      measured: Object.entries(times)
        .map(([name, ms]) => `${name} ${ms} ms`)
        .join(', '),
      reached: slowest < 100,
      numbers: times,
    },
  ];
}

async function hubOf(store: Store): Promise<HubRef> {
  const { hub, fence } = await store.acquireLease(`bench-${Math.random()}`, 600_000, {});
  return { hub, fence };
}

function put(session: StoredSession): Change {
  return { type: 'session.put', session };
}

function row(id: string, runsOn: HubRef, n: number): StoredSession {
  return {
    ...{ id, runsOn, principal: `p${n % 10}`, title: `Task ${n}`, cwd: `/home/somebody/project-${n}` },
    ...{ options: { permissionMode: 'default', allowedTools: ['Read', 'Edit'] }, secretNames: [] },
    ...{ workspace: { type: 'directory' }, totals: { turns: n, costUsd: n / 100 }, state: { tag: 'idle' as const } },
    ...{ createdAt: n, lastActiveAt: n },
  };
}

function event(sessionId: string, id: number, keep = false): Extract<Change, { type: 'event.append' }>['event'] {
  return { sessionId, id, at: id, type: 'output', keep, data: { text: `event ${id} ${'x'.repeat(200)}` } };
}

function eventsOf(sessionId: string, after: number, count = EVENTS_PER_BATCH): Change[] {
  return Array.from({ length: count }, (_, n) => ({
    type: 'event.append' as const,
    event: event(sessionId, after + n + 1),
  }));
}
