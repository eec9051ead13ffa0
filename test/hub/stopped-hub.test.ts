/** A hub whose process is suspended, with the real watchdog, the real Claude Code and Postgres. */

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { gate, hang, text } from '../../src/scripted-model/reply.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import { closedAfterwards, freshPostgres, withPostgres } from '../store/stores.ts';

/** A separate database, because the name of a hub's schema is fixed. */
async function freshDatabase(): Promise<string> {
  const { url } = await freshPostgres();
  const name = `hub_${randomUUID().replaceAll('-', '')}`;
  await withPostgres(url, (client) => client.query(`CREATE DATABASE ${name}`));
  onTestFinished(async () => {
    await withPostgres(url, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
  });
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

test('a hub that hangs loses its movable session, keeps the other, and no longer writes to the lost one', async () => {
  const shared = realpathSync(mkdtempSync(join(os.tmpdir(), 'claude-code-mcp-shared-')));
  onTestFinished(() => rmSync(shared, { recursive: true, force: true }));
  const url = await freshDatabase();
  const h = await startHarness({ hub: { args: ['--store', url, '--shared-workspace', shared] } });
  const held = gate(text('stayed'));
  h.model.on('move').reply(hang());
  h.model.on('stay').reply(held);
  const { sessionId: moves } = await h.ok('claude_code', { prompt: 'move', cwd: shared });
  const { sessionId: stays } = await h.ok('claude_code', { prompt: 'stay', cwd: h.project });
  const store = closedAfterwards(await openPostgresStore({ url }));
  expect([await store.session(moves), await store.session(stays)]).toMatchObject([{ movable: true }, {}]);
  const running = async (): Promise<number> =>
    (await h.processes()).filter(({ command }) => command.includes('claude-agent-sdk')).length;
  await eventually(async () => (await running()) === 2, { what: 'both sessions have a process' });

  const { pid } = JSON.parse(readFileSync(join(h.stateDir, 'claude-code-mcp', 'hub.json'), 'utf8'));
  process.kill(pid, 'SIGSTOP');
  try {
    await eventually(async () => (await running()) === 1, {
      what: 'the watchdog has ended one process',
      within: 30_000,
    });
    // Another hub takes it over. Releasing the lease saves waiting until it expires.
    const known = await store.session(moves);
    if (!known) throw new Error('the session is not stored');
    await store.releaseLease(known.runsOn);
    const { hub, fence } = await store.acquireLease('another', 60_000, { host: 'elsewhere' });
    expect(await store.claimSessions({ hub, fence }, [moves, stays])).toMatchObject([{ id: moves }]);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const before = await store.events(moves, { limit: 1_000 });
  const taken = await store.session(moves);
  held.release();
  // Calls that wait for the store while the hub notices the loss fail and have to be repeated.
  const rested = await eventually(
    async () => {
      const { isError, data } = await h.call('claude_code_check', { action: 'poll', sessionId: stays });
      return !isError && data.status === 'idle' ? data : undefined;
    },
    { what: 'the other session finishes', within: 30_000 },
  );
  expect(rested).toMatchObject({ result: { result: 'stayed' } });
  // By now the hub has noticed: it has renewed its lease and stored the other session.
  expect(await store.session(moves)).toEqual(taken);
  expect(await store.events(moves, { limit: 1_000 })).toEqual(before);
  expect(await running()).toBe(1);
}, 90_000);

test('a call to a hub that hangs is answered in time, and carried out once when the hub continues', async () => {
  const h = await startHarness({ hub: {} });
  const { pid } = JSON.parse(readFileSync(join(h.stateDir, 'claude-code-mcp', 'hub.json'), 'utf8'));
  h.model.on('only once').reply(text('done once'));
  await h.ok('claude_code_session', { action: 'list' });
  process.kill(pid, 'SIGSTOP');
  try {
    const refused = await h.fails('claude_code', { prompt: 'only once' }, 'UNAVAILABLE');
    expect(refused).toContain('The outcome of this call is unknown');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const { sessions } = await h.ok('claude_code_session', { action: 'list' });
  expect(sessions).toHaveLength(1);
  expect(await h.finish(sessions[0].sessionId)).toMatchObject({ answer: 'done once' });
}, 90_000);
