/** What applies only to a database server: other hubs, dropped connections, restarts. */

import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { DomainError } from '../../src/errors/errors.ts';
import type { HubRef } from '../../src/schema/store.ts';
import { writeReliably, follow } from '../../src/store/wake-ups.ts';
import { StoreUncertain, type Store } from '../../src/store/contract.ts';
import { openPostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/open.ts';
import { MIGRATIONS } from '../../src/store/sql/migrate.ts';
import { eventually } from '../harness/eventually.ts';
import { startPostgres, type Postgres } from '../harness/postgres.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';
import { append, command, event, put, send, session } from './rows.ts';
import { closedAfterwards, withPostgres } from './stores.ts';

let postgres: Postgres;
let schemas = 0;

// A separate server, because these tests stop and restart it.
beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres?.remove(), 60_000);

const freshSchema = (): string => `faults_${++schemas}`;

async function openAt(schema: string, options: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  return closedAfterwards(await openPostgresStore({ url: postgres.url, schema, timeoutMs: 3_000, ...options }));
}

async function hubOf(store: Store, id = 'hub-a'): Promise<HubRef> {
  const { hub, fence } = await store.acquireLease(id, 60_000, {});
  return { hub, fence };
}

const cutConnections = (): Promise<unknown> =>
  withPostgres(postgres.url, (client) =>
    client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'claude-code-mcp'`),
  );

test('hubs started at once on an empty database share one store', async () => {
  const schema = freshSchema();
  const stores = await Promise.all(Array.from({ length: 5 }, () => openAt(schema)));
  const keys = await Promise.all(stores.map((store, index) => store.ensureSetting('key', String(index))));
  expect(new Set(keys).size).toBe(1);
});

test('a store of a newer version is refused and left unchanged; a failed migration leaves no trace', async () => {
  const schema = freshSchema();
  const newer = { migrations: [...MIGRATIONS, 'CREATE TABLE later (id TEXT PRIMARY KEY)'] };
  const store = await openAt(schema);
  await store.ensureSetting('key', 'kept');
  const broken = { migrations: [...MIGRATIONS, 'CREATE TABLE later (id TEXT); CREATE TABLE later (id TEXT)'] };
  await expect(openAt(schema, broken)).rejects.toThrow(/later/);
  await openAt(schema, newer);
  await expect(openAt(schema)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining(`has version ${MIGRATIONS.length + 1},`) as unknown,
  });
  expect(await (await openAt(schema, newer)).setting('key')).toBe('kept');
});

test('an unreachable server or refused login gives a clear error without the password', async () => {
  const refused = openAt('x', { url: 'postgres://me:secret@127.0.0.1:1/db' });
  await expect(refused).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const wrong = openAt('x', { url: postgres.url.replace('only-on-loopback', 'wrong-secret') });
  await expect(wrong).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await expect(wrong).rejects.not.toThrow(/wrong-secret/);
});

test('one hub’s writes wake the others, and every hub sees positions in order', async () => {
  const schema = freshSchema();
  const stores = await Promise.all([openAt(schema), openAt(schema), openAt(schema)]);
  const reader = await openAt(schema);
  const writers = await Promise.all(
    stores.map(async (store, index) => {
      const hub = await hubOf(store, `hub-${index}`);
      await store.write([put(session(`s${index}`, hub))], hub);
      return { store, hub, sessionId: `s${index}` };
    }),
  );
  const stop = new AbortController();
  const seen: string[] = [];
  const positions: number[] = [];
  const following = (async () => {
    // Notifications only: regular polling would hide a lost one.
    for await (const { entries } of follow(reader, 0, stop.signal, { limit: 5, lookEveryMs: 600_000 })) {
      for (const { kind, row, seq } of entries) {
        positions.push(seq);
        if (kind === 'event') seen.push(`${row.sessionId}/${row.id}`);
      }
      if (seen.length === 120) stop.abort();
    }
  })();
  await Promise.all(
    writers.map(async ({ store, hub, sessionId }) => {
      for (let id = 1; id <= 40; id++) await store.write([append(event(sessionId, id))], hub);
    }),
  );
  await following;
  expect(new Set(seen).size).toBe(120);
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
});

test('two processes of one hub never take the same command', async () => {
  const schema = freshSchema();
  const [one, other] = [await openAt(schema), await openAt(schema)];
  const hub = await hubOf(one);
  const ids = Array.from({ length: 20 }, (_, index) => `s${index}`);
  await one.write(
    ids.map((id) => put(session(id, hub))),
    hub,
  );
  await one.write(ids.flatMap((id) => [send(command(id, `${id}-1`)), send(command(id, `${id}-2`))]));
  const taken = await Promise.all(Array.from({ length: 10 }, (_, n) => (n % 2 ? one : other).takeCommands(hub, 7)));
  const takenIds = taken.flat().map(({ id }) => id);
  expect(new Set(takenIds).size).toBe(takenIds.length);
  expect(takenIds.every((id) => id.endsWith('-1'))).toBe(true);
});

test('a lease can be renewed while a blocked write uses up the pool, and after its connection was cut', async () => {
  const schema = freshSchema();
  const store = await openAt(schema, { connections: 1 });
  const hub = await hubOf(store);
  await withPostgres(postgres.url, async (client) => {
    await client.query('BEGIN');
    await client.query(`SELECT * FROM "${schema}".counters FOR UPDATE`);
    let isStored = false;
    const stored = store.write([put(session('s1', hub))], hub).then(() => (isStored = true));
    await eventually(
      async () => {
        const { rowCount } = await client.query(
          `SELECT 1 FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid() AND locktype = 'transactionid'`,
        );
        return rowCount;
      },
      { what: 'the write is waiting for the lock' },
    );
    const { expiresAt } = await store.renewLease(hub, 15_000, {});
    expect({ isStored, expiresAt: expiresAt > 0 }).toEqual({ isStored: false, expiresAt: true });
    await client.query('ROLLBACK');
    await stored;
  });
  await cutConnections();
  await eventually(() => store.renewLease(hub, 15_000, {}).then(Boolean, () => false), {
    what: 'the lease is renewed over a new connection',
  });
});

test('a lease is renewed in time over a slow connection, even if it has to reconnect', async () => {
  const { hostname, port } = new URL(postgres.url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  onTestFinished(() => proxy.close());
  const url = new URL(postgres.url);
  url.port = String(proxy.port);
  const store = await openAt(freshSchema(), { url: url.href });
  const hub = await hubOf(store);
  await store.renewLease(hub, 15_000, {});
  const renewalMs = async (): Promise<number> => {
    const begun = performance.now();
    await store.renewLease(hub, 15_000, { slow: true });
    return performance.now() - begun;
  };
  // 300 ms per round trip; a hub trusts its lease for 6 s from when the last renewal began.
  proxy.delay(150);
  expect(await renewalMs()).toBeLessThan(1_000);
  proxy.set('refused');
  await expect(renewalMs()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  proxy.set('open');
  expect(await renewalMs()).toBeLessThan(3_000);
  expect(await store.leases()).toMatchObject([{ ...hub, info: { slow: true } }]);
  proxy.delay(0);
});

test('a hub whose connection dies in the middle of a write blocks the others for a few seconds only', async () => {
  const { hostname, port } = new URL(postgres.url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  onTestFinished(() => proxy.close());
  const url = new URL(postgres.url);
  url.port = String(proxy.port);
  const schema = freshSchema();
  const [dying, other] = [await openAt(schema, { url: url.href }), await openAt(schema, { timeoutMs: 10_000 })];
  const [hub, second] = [await hubOf(dying), await hubOf(other, 'hub-b')];
  await withPostgres(postgres.url, async (client) => {
    await client.query('BEGIN');
    await client.query(`SELECT * FROM "${schema}".counters FOR UPDATE`);
    const lost = dying.write([put(session('s1', hub))], hub);
    await eventually(
      async () =>
        (await client.query(`SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`)).rowCount,
      { what: 'the write is waiting for the lock' },
    );
    proxy.set('silent');
    // The write now gets the lock that every write needs, over a connection that is dead.
    await client.query('ROLLBACK');
    await expect(lost).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
  await other.write([put(session('s2', second))], second);
  expect(await other.session('s1')).toBeUndefined();
  proxy.set('open');
});

test.each([
  ['during its commit', 'DEFERRABLE INITIALLY DEFERRED'],
  ['during a statement sent together with the commit', ''],
])('a write whose connection is lost %s is retried until its outcome is known', async (_, when) => {
  const schema = freshSchema();
  const store = await openAt(schema, { timeoutMs: 500 });
  const hub = await hubOf(store);
  await store.write([put(session('s1', hub))], hub);
  // The server commits after the client has given up the connection.
  await withPostgres(postgres.url, (client) =>
    client.query(`
      CREATE FUNCTION "${schema}".slowly() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON "${schema}".commands ${when}
        FOR EACH ROW EXECUTE FUNCTION "${schema}".slowly()`),
  );
  const failures: unknown[] = [];
  const write: Store['write'] = (changes, by) =>
    store.write(changes, by).catch((error: unknown) => {
      failures.push(error);
      throw error;
    });
  await writeReliably({ write, subscribe: (wake) => store.subscribe(wake) }, [send(command('s1', 'c1'))]);
  expect(failures[0]).toBeInstanceOf(StoreUncertain);
  expect(await store.takeCommands(hub, 5)).toMatchObject([{ id: 'c1' }]);
});

test('batches that touch the same sessions in different orders all succeed', async () => {
  const store = await openAt(freshSchema());
  const hub = await hubOf(store);
  const ids = ['a', 'b', 'c', 'd'];
  await store.write(
    ids.map((id) => put(session(id, hub))),
    hub,
  );
  const shuffled = (n: number): string[] => [...ids.slice(n % 4), ...ids.slice(0, n % 4)];
  await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      store.write(
        shuffled(n).map((id) => put(session(id, hub, { title: `${n}` }))),
        hub,
      ),
    ),
  );
  const titles = (await store.sessions({ limit: 9 })).items.map(({ title }) => title);
  expect(new Set(titles).size).toBe(1);
});

test('with connections cut and the server restarted under load, errors are UNAVAILABLE and everything is stored once', async () => {
  const schema = freshSchema();
  const [store, other] = [await openAt(schema), await openAt(schema)];
  const hub = await hubOf(store);
  const sessions = ['s1', 's2', 's3'];
  await store.write(
    sessions.map((id) => put(session(id, hub))),
    hub,
  );

  const failures: unknown[] = [];
  let refusals = 0;
  const stop = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    let after = 0;
    while (!stop.signal.aborted) {
      try {
        for await (const page of follow(other, after, stop.signal, { lookEveryMs: 200 })) {
          for (const { kind, row } of page.entries) if (kind === 'event') seen.push(`${row.sessionId}/${row.id}`);
          after = page.last;
          if (seen.length === 360) stop.abort();
        }
      } catch (error) {
        failures.push(error);
      }
    }
  })();
  const writing = sessions.map(async (id) => {
    for (let n = 1; n <= 120;) {
      try {
        await store.write([append(event(id, n, { keep: true }))], hub);
        n++;
      } catch (error) {
        failures.push(error);
        refusals++;
      }
    }
  });
  const progress = (): Promise<number> =>
    store.events('s1', { limit: 1 }).then(
      ({ lastId }) => lastId,
      () => 0,
    );
  await expect.poll(progress, { timeout: 20_000 }).toBeGreaterThan(10);
  await cutConnections();
  await expect.poll(progress, { timeout: 20_000 }).toBeGreaterThan(40);
  await postgres.restart();
  await Promise.all(writing);
  await following;

  expect(refusals).toBeGreaterThan(0);
  for (const failure of failures) expect(failure).toMatchObject({ code: 'UNAVAILABLE' });
  expect(failures.every((failure) => failure instanceof DomainError)).toBe(true);
  expect(seen).toHaveLength(360);
  expect(new Set(seen).size).toBe(360);
}, 60_000);

test('while the server is down, calls fail without hanging; once it is back, everything works again, wake-ups included', async () => {
  const schema = freshSchema();
  const [store, other] = [await openAt(schema), await openAt(schema)];
  const hub = await hubOf(store);
  await postgres.stop();
  try {
    await expect(store.write([put(session('s1', hub))], hub)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(store.sessions({ limit: 1 })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  } finally {
    await postgres.start();
  }
  let wakeUps = 0;
  other.subscribe(() => wakeUps++);
  // Subscribers are woken once after a reconnect, in case a notification was missed.
  await expect.poll(() => wakeUps, { timeout: 10_000 }).toBe(1);
  await store.write([put(session('s1', hub))], hub);
  expect(await other.session('s1')).toBeDefined();
  await expect.poll(() => wakeUps).toBe(2);
});
