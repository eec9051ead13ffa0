/** A session that moves from one hub to another and back; each has its own home, both share one Postgres. */

import { randomUUID } from 'node:crypto';
import { readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { tool } from '../../src/scripted-model/reply.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { afterThisTest, closedAfterwards, sharedPostgres, temporaryDirectory, withPostgres } from '../store/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Hubs always use the same schema, so each test needs its own database. */
async function freshDatabase(): Promise<string> {
  const server = await sharedPostgres();
  const name = `fleet_${randomUUID().replaceAll('-', '')}`;
  await withPostgres(server, (client) => client.query(`CREATE DATABASE ${name}`));
  afterThisTest(() => withPostgres(server, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`)));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Ends the leases at once, instead of waiting 15 s for a killed hub's lease to expire. */
async function expireLeases(url: string): Promise<void> {
  const store = await openPostgresStore({ url });
  for (const lease of await store.leases()) await store.releaseLease(lease);
  await store.close();
}

async function kill(h: Harness, url: string): Promise<void> {
  await h.stopHub('SIGKILL');
  await expireLeases(url);
}

async function transcriptsOf({ configDir }: Harness, sessionId: string): Promise<string[]> {
  const names = await readdir(path.join(configDir, 'projects'), { recursive: true }).catch(() => []);
  return names.filter((name) => name.includes(sessionId)).sort();
}

/** The uuid of the first message that was answered. */
async function firstMessage(h: Harness, sessionId: string): Promise<string> {
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, cursor: 1, responseMode: 'full' });
  return events.find(({ type }: Json) => type === 'result').data.user_message_uuids[0];
}

test('another hub continues a session with its history, and the first one later continues it from there', async () => {
  const url = await freshDatabase();
  const shared = await realpath(await temporaryDirectory());
  const hub = { env: { CLAUDE_CODE_MCP_STORE: url }, args: ['--shared-workspace', shared] };
  const a = await startHarness({ hub, tolerate: { stderr: true } });
  const { model } = a;
  const b = await startHarness({
    env: model.env(),
    hub: { ...hub, env: { ...hub.env, ...model.env() } },
    tolerate: { stderr: true },
  });

  const note = path.join(shared, 'note.txt');
  model
    .on('the first task')
    .reply(
      tool('Write', { file_path: note, content: 'from the first hub\n' }),
      tool('Agent', { description: 'look', prompt: 'look around', subagent_type: 'general-purpose' }),
      'Done first.',
    )
    .always('The agent reported.');
  model.on('look around').reply('Nothing to see.');
  const { sessionId } = await a.ok('claude_code', {
    prompt: 'the first task',
    cwd: shared,
    permissionMode: 'acceptEdits',
    advanced: { enableFileCheckpointing: true },
  });
  const first = await a.finish(sessionId);
  const checkpoint = await firstMessage(a, sessionId);
  await kill(a, url);

  const second = model.on('the second task').reply('Done second.');
  await b.ok('claude_code_reply', { sessionId, prompt: 'the second task' });
  const after = await b.finish(sessionId);
  expect(after).toMatchObject({ answer: 'Done second.' });
  const [secondRequest] = model.requestsFor(second);
  expect(secondRequest?.userTexts).toEqual(expect.arrayContaining(['the first task', 'the second task']));
  expect(JSON.stringify(secondRequest?.body)).toContain(`Done first.`);
  const copied = await transcriptsOf(b, sessionId);
  expect(copied).toEqual(await transcriptsOf(a, sessionId));
  expect(copied.filter((name) => name.endsWith('.meta.json'))).toHaveLength(1);
  expect(
    await b.fails(
      'claude_code_session',
      { action: 'rewind', sessionId, toUserMessage: checkpoint },
      'INVALID_ARGUMENT',
    ),
  ).toContain('Checkpoints do not move');

  const costs = [first.costUsd, after.costUsd];

  // The first hub's transcript file is now older than the store's copy.
  await kill(b, url);
  await a.startHub(hub);
  const forked = model.on('the forked task').reply('Done apart.');
  const fork = await a.ok('claude_code_reply', { sessionId, prompt: 'the forked task', forkSession: true });
  expect(await a.finish(fork.sessionId)).toMatchObject({ answer: 'Done apart.' });
  expect(model.requestsFor(forked)[0]?.userTexts).toEqual(
    expect.arrayContaining(['the first task', 'the second task', 'the forked task']),
  );
  const third = model.on('the third task').reply('Done third.');
  await a.ok('claude_code_reply', { sessionId, prompt: 'the third task' });
  const last = await a.finish(sessionId);
  expect(last).toMatchObject({ answer: 'Done third.', turns: (first.turns ?? 0) + 2 });
  expect(model.requestsFor(third)[0]?.userTexts).toEqual(
    expect.arrayContaining(['the first task', 'the second task', 'the third task']),
  );
  // Each turn costs the same, and none is counted twice.
  const [before = 0, between = 0] = costs;
  expect(between).toBeGreaterThan(before);
  expect((last.costUsd ?? 0) - between).toBeCloseTo(between - before, 6);
});

test('a failed transcript mirror is reported, keeps its session from moving, and is repaired', async () => {
  const url = await freshDatabase();
  const shared = await realpath(await temporaryDirectory());
  const h = await startHarness({
    hub: { env: { CLAUDE_CODE_MCP_STORE: url }, args: ['--shared-workspace', shared] },
    tolerate: { stderr: true },
  });
  const store = closedAfterwards(await openPostgresStore({ url }));
  const rename = (from: string, to: string): Promise<unknown> =>
    withPostgres(url, (client) => client.query(`ALTER TABLE claude_code_mcp.${from} RENAME TO ${to}`));
  const isMovable = async (sessionId: string): Promise<boolean> => (await store.session(sessionId))?.movable === true;
  h.model.on('one').reply('Said one.');
  h.model.on('two').reply('Said two.');

  const { sessionId } = await h.ok('claude_code', { prompt: 'one', cwd: shared });
  await h.finish(sessionId);
  // A result is only reported once its mirror is complete.
  expect(JSON.stringify(await store.transcript({ sessionId }))).toContain('Said one.');
  expect(await isMovable(sessionId)).toBe(true);

  await rename('transcripts', 'away');
  await h.say(sessionId, 'two');
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'Said two.' });
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, cursor: 1 });
  expect(events).toContainEqual(expect.objectContaining({ type: 'error', data: { message: 'mirror_error' } }));
  expect(await isMovable(sessionId)).toBe(false);

  await rename('away', 'transcripts');
  await expect.poll(() => isMovable(sessionId), { timeout: 20_000 }).toBe(true);
  expect(JSON.stringify(await store.transcript({ sessionId }))).toContain('Said two.');
});
