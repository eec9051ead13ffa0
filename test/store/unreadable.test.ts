/** Rows that a bug, a person or another program has damaged: they are named, kept, and hide no others. */

import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { loadSqlite } from '../../src/store/sqlite/binding.ts';
import { append, ask, command, event, put, request, send, session, T0 } from './rows.ts';
import { afterThisTest, closedAfterwards, freshPostgres, ref, temporaryDirectory, withPostgres } from './stores.ts';

interface Damageable {
  readonly store: Store;
  readonly warnings: string[];
  /** Runs a statement behind the store's back, and returns the rows. */
  sql(text: string): Promise<Readonly<Record<string, unknown>>[]>;
}

const OPEN: Readonly<Record<'sqlite' | 'postgres', () => Promise<Damageable>>> = {
  async sqlite() {
    const file = path.join(await temporaryDirectory(), 'hub.db');
    const warnings: string[] = [];
    const store = closedAfterwards(await openSqliteStore({ file, warn: (line) => warnings.push(line) }));
    const other = (await loadSqlite())(file);
    afterThisTest(async () => other.close());
    return { store, warnings, sql: async (text) => other.all(text) };
  },
  async postgres() {
    const { url, schema } = await freshPostgres();
    const warnings: string[] = [];
    const store = closedAfterwards(await openPostgresStore({ url, schema, warn: (line) => warnings.push(line) }));
    const sql: Damageable['sql'] = (text) =>
      withPostgres(url, async (client) => {
        await client.query(`SET search_path = "${schema}"`);
        return (await client.query<Record<string, unknown>>(text)).rows;
      });
    return { store, warnings, sql };
  },
};

describe.each(['sqlite', 'postgres'] as const)('%s', (kind) => {
  it('leaves out rows that cannot be read, names each once, and keeps them', async () => {
    const { store, warnings, sql } = await OPEN[kind]();
    const hub = ref(await store.acquireLease('hub-a', 15_000, {}));
    const at = (n: number): { createdAt: number; lastActiveAt: number } => ({ createdAt: T0, lastActiveAt: T0 + n });
    await store.write(
      [1, 2, 3, 4].map((n) => put(session(`s${n}`, hub, at(n)))),
      hub,
    );
    await store.write([append(event('s1', 1)), append(event('s1', 2)), append(event('s1', 3))], hub);
    await store.write([ask(request('s1', 'r1')), ask(request('s1', 'r2'))], hub);
    await store.write([send(command('s1', 'c1')), send(command('s2', 'c2'))]);
    await store.takeCommands(hub, 5);
    await sql(`UPDATE sessions SET data = '{"half":' WHERE id = 's3'`);
    await sql(`UPDATE events SET data = 'garbage' WHERE session_id = 's1' AND id = 2`);
    await sql(`UPDATE requests SET data = '{}' WHERE id = 'r1'`);
    await sql(`UPDATE commands SET data = '[]' WHERE id = 'c1'`);

    // A broken row neither ends a list nor moves the place where the next page begins.
    const first = await store.sessions({ limit: 2 });
    expect(first).toMatchObject({ items: [{ id: 's4' }], unreadable: ['s3'], next: expect.any(String) as string });
    const second = await store.sessions({ limit: 2, after: first.next! });
    expect(second).toMatchObject({ items: [{ id: 's2' }, { id: 's1' }] });
    expect(second.unreadable).toBeUndefined();
    expect((await store.events('s1', { limit: 9 })).events.map(({ id }) => id)).toEqual([1, 3]);
    expect((await store.inbox({ limit: 9 })).items.map(({ id }) => id)).toEqual(['r2']);
    const { entries, last } = await store.feed({ after: 0, limit: 100 });
    expect(entries.length).toBeGreaterThan(5);
    expect(await store.feed({ after: last, limit: 100 })).toEqual({ entries: [], last });
    await expect(store.session('s3')).rejects.toThrow('The session s3 is stored, but cannot be read: it is not valid');

    // Nor does it keep the hub from starting again.
    const next = ref(await store.acquireLease('hub-a', 15_000, {}));
    expect((await store.claimSessions(next, ['s1', 's3'])).map(({ id }) => id)).toEqual(['s1']);
    expect(await store.command('c2')).toMatchObject({ progress: { status: 'unknown' } });

    await store.sessions({ limit: 9 });
    const named = (text: string): string[] => warnings.filter((line) => line.includes(text));
    expect(named('session s3 that cannot be read: it is not valid JSON')).toHaveLength(1);
    expect(named('request r1 that cannot be read: id, sessionId')).toHaveLength(1);
    expect(named('command c1 that cannot be read')).toHaveLength(1);
    expect(warnings.join()).not.toContain('half');
    expect(await sql(`SELECT data FROM sessions WHERE id = 's3'`)).toEqual([{ data: '{"half":' }]);
  });
});
