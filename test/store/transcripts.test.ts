/** Claude Code's transcripts in every store. */

import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { TranscriptEntry } from '../../src/schema/store.ts';
import { MIGRATIONS } from '../../src/store/sql/migrate.ts';
import { loadSqlite } from '../../src/store/sqlite/binding.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { manualNow } from './manual-now.ts';
import { put, session, T0 } from './rows.ts';
import {
  closedAfterwards,
  KINDS,
  openStore,
  temporaryDirectory,
  unexpectedWarning,
  type OpenedStore,
  type OpenOptions,
} from './stores.ts';

const main = { sessionId: 's1' };
const agent = { sessionId: 's1', subpath: 'subagents/agent-a1' };

const said = (uuid: string, text = uuid): TranscriptEntry => ({ type: 'user', uuid, message: { content: text } });
const title = (text: string): TranscriptEntry => ({ type: 'custom-title', text });

describe.each(KINDS)('%s transcripts', (kind) => {
  const opened = async (options?: OpenOptions): Promise<OpenedStore> => {
    const { store, hub } = await openStore(kind, options);
    await store.write([put(session('s1', hub, { movable: true })), put(session('s2', hub))], hub);
    return { store, hub };
  };

  test('are read back in order: entries with a uuid once, those without as often as appended', async () => {
    const { store, hub } = await opened();
    expect(await store.transcript(main)).toBeUndefined();
    const odd = said('u2', 'NUL \0, a lone \ud800 and ünï');
    await store.appendTranscript(hub, main, [title('A'), said('u1')]);
    await store.appendTranscript(hub, main, [said('u1', 'again'), odd, odd, title('B'), title('A')]);
    await store.appendTranscript(hub, main, []);
    expect(await store.transcript(main)).toEqual([title('A'), said('u1'), odd, title('B'), title('A')]);
  });

  test('are separate for a session and each of its sub-agents, uuids included', async () => {
    const { store, hub } = await opened();
    await store.appendTranscript(hub, main, [said('u1')]);
    await store.appendTranscript(hub, agent, [said('u1', 'of the agent')]);
    await store.appendTranscript(hub, { ...agent, sessionId: 's2' }, [said('u1')]);
    expect(await store.transcript(agent)).toEqual([said('u1', 'of the agent')]);
    expect(await store.transcriptSubpaths('s1')).toEqual([agent.subpath]);
    expect(await store.transcriptSubpaths('nobody')).toEqual([]);
  });

  test('can be replaced as a whole and then appended to', async () => {
    const { store, hub } = await opened();
    await store.appendTranscript(hub, main, [said('u1'), said('u3')]);
    await store.replaceTranscript(hub, main, [said('u1'), said('u2'), said('u2'), said('u3')]);
    await store.appendTranscript(hub, main, [said('u3'), said('u4')]);
    expect((await store.transcript(main))?.map(({ uuid }) => uuid)).toEqual(['u1', 'u2', 'u3', 'u4']);
    await store.replaceTranscript(hub, main, []);
    expect(await store.transcript(main)).toBeUndefined();
  });

  test('accept more entries in one call than fit into one statement', async () => {
    const { store, hub } = await opened();
    const many = Array.from({ length: 1_200 }, (_none, index) => said(`u${index}`));
    await store.appendTranscript(hub, main, many.slice(0, 700));
    await store.appendTranscript(hub, main, many);
    expect(await store.transcript(main)).toEqual(many);
  });

  test('accept writes only from the current incarnation of the session’s hub', async () => {
    const clock = manualNow(T0);
    const { store, hub } = await opened({ now: clock.now });
    await expect(store.appendTranscript(hub, { sessionId: 'nobody' }, [said('u1')])).rejects.toMatchObject({
      conflict: 'unknownSession',
    });
    const other = await store.acquireLease('hub-b', 15_000, {});
    await expect(store.appendTranscript(other, main, [said('u1')])).rejects.toMatchObject({ conflict: 'fenced' });
    clock.advance(20_000);
    await store.renewLease(other, 15_000, {});
    await store.claimSessions(other, ['s1']);
    await expect(store.appendTranscript(hub, main, [said('u1')])).rejects.toMatchObject({ conflict: 'fenced' });
    await expect(store.replaceTranscript(hub, main, [said('u1')])).rejects.toMatchObject({ conflict: 'fenced' });
    await store.appendTranscript(other, main, [said('u2')]);
    await store.acquireLease('hub-b', 15_000, {});
    await expect(store.appendTranscript(other, main, [said('u3')])).rejects.toMatchObject({ conflict: 'fenced' });
    expect(await store.transcript(main)).toEqual([said('u2')]);
  });

  test('wake no subscribers, and are forgotten with their session', async () => {
    const { store, hub } = await opened();
    let woken = 0;
    store.subscribe(() => woken++);
    await store.appendTranscript(hub, main, [said('u1')]);
    await store.appendTranscript(hub, agent, [said('u1')]);
    expect(woken).toBe(0);
    await store.forget({ before: T0 + 1, limit: 10 });
    expect(await store.transcript(main)).toBeUndefined();
    expect(await store.transcriptSubpaths('s1')).toEqual([]);
  });
});

test('a version 1 store is migrated to hold transcripts and keeps its data', async () => {
  const file = path.join(await temporaryDirectory(), 'hub.db');
  const first = await openSqliteStore({ file, warn: unexpectedWarning, migrations: MIGRATIONS.slice(0, 1) });
  const hub = await first.acquireLease('hub-a', 15_000, {});
  await first.close();
  const written = session('s1', { hub: hub.hub, fence: hub.fence });
  const old = (await loadSqlite())(file);
  old.all(
    `INSERT INTO sessions (id, seq, principal, tag, hub, fence, last_active_at, holds_work, search, data)
     VALUES ('s1', 1, 'p', 'idle', ?, ?, 1, 0, '', ?)`,
    [hub.hub, hub.fence, JSON.stringify(written)],
  );
  old.close();
  const store = closedAfterwards(await openSqliteStore({ file, warn: unexpectedWarning }));
  await store.appendTranscript(hub, main, [said('u1')]);
  expect(await store.transcript(main)).toEqual([said('u1')]);
  expect(await store.session('s1')).toEqual(written);
});
