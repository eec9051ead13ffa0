/** Several hubs when one of them, or Postgres, fails: real processes, the real Claude Code, a real Postgres. */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { startPostgres, type Postgres } from '../harness/postgres.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import { Fleet, type ApiReply, type FleetHub } from './fleet.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

let postgres: Postgres;
let fleet: Fleet;

beforeAll(async () => {
  postgres = await startPostgres(['-c', 'fsync=off']);
  // All start at once on an empty store, with clocks up to ten minutes apart. New sessions go to the first hub.
  const clocks = [0, 300_000, -300_000];
  fleet = await Fleet.open({ postgresUrl: postgres.url, hubs: 3, clocks, places: [40, 10, 10] });
});

afterAll(async () => {
  await fleet?.close();
  await postgres?.remove();
});

test('a hub is killed: other hubs take over its sessions and continue them with their full history', async () => {
  const { model } = fleet;
  const cwd = await fleet.directory('killed');
  const COMMAND = { command: 'touch made.txt', description: 'make a file' };
  model.on('remember the word heron').reply(text('I will.'));
  model.on('work for long').reply(gate(text('never said')));
  model.on('make a file').reply(tool('Bash', COMMAND), text('nobody answered'));
  model.on('was allowed').reply(tool('Bash', COMMAND), text('made it'));
  const [owner, next, last] = fleet.hubs as [FleetHub, FleetHub, FleetHub];
  const resting = await fleet.start(next, 'remember the word heron', cwd);
  await fleet.waitForStatus(last, resting, 'idle');
  const working = await fleet.start(next, 'work for long', cwd);
  const waiting = await fleet.start(last, 'make a file', cwd);
  for (const id of [resting, working, waiting]) expect(await fleet.ownerOf(id)).toBe(owner);
  const { requests } = await fleet.waitForStatus(next, waiting, 'waiting_permission');
  const requestId = requests[0]?.requestId ?? '';

  await owner.stop('SIGKILL');
  const stopped = await fleet.waitForStatus(next, working, 'error', 60_000);
  expect(stopped.result?.result).toContain('reply to continue');
  expect((await fleet.session(last, waiting)).requests.map((one) => one.requestId)).toEqual([requestId]);

  model.on('which word').reply(text('heron'));
  const sent = await fleet.api(last, 'POST', `/sessions/${resting}/messages`, { body: { prompt: 'which word?' } });
  expect(sent.status).toBe(200);
  expect((await fleet.waitForStatus(next, resting, 'idle')).result?.result).toBe('heron');
  expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('remember the word heron');

  const answered = await fleet.api(last, 'POST', `/requests/${requestId}/answer`, {
    body: { decision: 'allow' },
    role: 'approver',
  });
  expect(answered.status).toBe(200);
  expect((await fleet.waitForStatus(next, waiting, 'idle')).result?.result).toBe('made it');
  expect(existsSync(path.join(cwd, 'made.txt'))).toBe(true);
  for (const id of [resting, working, waiting]) expect((await fleet.claudesOf(id)).length).toBeLessThan(2);
  await owner.start();
  expect((await fleet.session(owner, waiting)).status).toBe('idle');
});

test('one hub loses Postgres: it reports UNAVAILABLE, the others keep working, and it catches up', async () => {
  const { model } = fleet;
  const cwd = await fleet.directory('cut');
  model.on('stay where you are').reply(text('done'));
  const [alone, other] = fleet.hubs as [FleetHub, FleetHub];
  const staying = await fleet.start(alone, 'stay where you are', cwd, { advanced: { env: { TOKEN: 'x' } } });
  await fleet.waitForStatus(other, staying, 'idle');
  alone.proxy.set('refused');
  const answer = await fleet.api(alone, 'POST', `/sessions/${staying}/messages`, { body: { prompt: 'lost?' } });
  expect(answer).toMatchObject({ status: 503, json: { error: { code: 'UNAVAILABLE' } } });
  expect((await fleet.session(other, staying)).result?.result).toBe('done');
  alone.proxy.set('open');
  model.on('and again').reply(text('here I am'));
  await eventually(
    async () =>
      (await fleet.api(other, 'POST', `/sessions/${staying}/messages`, { body: { prompt: 'and again' } })).status ===
      200,
    { what: 'the hub carries out commands again', within: 30_000, every: 500 },
  );
  expect((await fleet.waitForStatus(other, staying, 'idle')).result?.result).toBe('here I am');
  expect(model.requests.filter(({ body }) => JSON.stringify(body).includes('lost?'))).toEqual([]);
});

test('Postgres is restarted: calls fail meanwhile, and nothing reported is lost', async () => {
  const { model } = fleet;
  const cwd = await fleet.directory('restart');
  model.on('before').reply(text('told'));
  const [hub, other] = fleet.hubs as [FleetHub, FleetHub];
  const id = await fleet.start(hub, 'before', cwd);
  await fleet.waitForStatus(other, id, 'idle');
  await postgres.stop();
  const meanwhile = await fleet.api(hub, 'POST', '/sessions', { body: { prompt: 'x', cwd } });
  expect(meanwhile.status).toBe(503);
  await postgres.start();
  expect((await fleet.waitForStatus(other, id, 'idle')).result?.result).toBe('told');
  model.on('after').reply(text('still here'));
  await eventually(
    async () =>
      (await fleet.api(other, 'POST', `/sessions/${id}/messages`, { body: { prompt: 'after' } })).status === 200,
    { what: 'messages are accepted again', within: 30_000, every: 500 },
  );
  expect((await fleet.waitForStatus(hub, id, 'idle')).result?.result).toBe('still here');
});

test('every hub is restarted in turn while a session is in use', async () => {
  const { model } = fleet;
  const cwd = await fleet.directory('rolling');
  model.on('round').reply(text('0'), text('1'), text('2'), text('3'));
  const id = await fleet.start(fleet.hubs[0]!, 'round', cwd);
  await fleet.waitForStatus(fleet.hubs[1]!, id, 'idle');
  for (const [index, hub] of fleet.hubs.entries()) {
    await hub.stop();
    const front = fleet.hubs.find((one) => one !== hub)!;
    await eventually(
      async () =>
        (await fleet.api(front, 'POST', `/sessions/${id}/messages`, { body: { prompt: 'round' } })).status === 200,
      { what: `a message is accepted while ${hub.name} is down`, within: 30_000, every: 250 },
    );
    const { result } = await fleet.waitForStatus(front, id, 'idle');
    expect(result?.result).toBe(String(index + 1));
    await hub.start();
  }
  expect((await fleet.claudesOf(id)).length).toBeLessThan(2);
});

test('a hub hangs: its movable session continues elsewhere, the other one finishes when the hub wakes up', async () => {
  const { model, store } = fleet;
  const cwd = await fleet.directory('stopped');
  const held = gate(text('stayed'));
  model.on('hang and move').reply(gate(text('never said')));
  model.on('hang and stay').reply(held);
  model.on('go on elsewhere').reply(text('moved'));
  const [owner, next] = fleet.hubs as [FleetHub, FleetHub];
  let front = owner;
  const client = await fleet.connect(() => front);
  const call = async (name: string, args: object): Promise<Json> => {
    const { structuredContent } = await client.callTool({ name, arguments: { ...args } });
    return structuredContent as Json;
  };
  const { sessionId: moves } = await call('claude_code', { prompt: 'hang and move', cwd });
  const stays = await fleet.start(owner, 'hang and stay', cwd, { advanced: { env: { TOKEN: 'x' } } });
  for (const id of [moves, stays]) {
    expect(await fleet.ownerOf(id)).toBe(owner);
    await eventually(async () => (await fleet.claudesOf(id)).length === 1, { what: `session ${id} has a process` });
  }
  const watched = fleet.watchClaudes();
  onTestFinished(watched.stop);

  owner.process.kill('SIGSTOP');
  front = next;
  let known: Json;
  try {
    // The hub trusts its lease for 6 s; the others wait for 15 s.
    await eventually(async () => (await fleet.claudesOf(moves)).length === 0, {
      what: 'the watchdog has ended the movable session',
      within: 12_000,
    });
    expect((await fleet.session(next, moves)).status).toBe('running');
    expect(await fleet.claudesOf(stays)).toHaveLength(1);
    await fleet.waitForStatus(next, moves, 'error', 60_000);
    expect(await fleet.ownerOf(moves)).not.toBe(owner);
    const away = await fleet.api(next, 'POST', `/sessions/${stays}/messages`, { body: { prompt: 'are you there?' } });
    expect(away).toMatchObject({ status: 503, json: { error: { code: 'UNAVAILABLE' } } });
    await call('claude_code_reply', { sessionId: moves, prompt: 'go on elsewhere' });
    await fleet.waitForStatus(next, moves, 'idle');
    expect((await call('claude_code_check', { action: 'poll', sessionId: moves })).result.result).toBe('moved');
    known = { session: await store.session(moves), events: await store.events(moves, { limit: 1_000 }) };
  } finally {
    owner.process.kill('SIGCONT');
  }
  held.release();
  expect((await fleet.waitForStatus(next, stays, 'idle')).result?.result).toBe('stayed');
  expect((await fleet.waitForStatus(owner, moves, 'idle')).result?.result).toBe('moved');
  expect({ session: await store.session(moves), events: await store.events(moves, { limit: 1_000 }) }).toEqual(known);
  expect([watched.most.get(moves)?.length, watched.most.get(stays)?.length]).toEqual([1, 1]);
});

test('one hub’s connection to Postgres goes silent: no call hangs there, and other hubs continue its sessions', async () => {
  const { model } = fleet;
  const cwd = await fleet.directory('silent');
  model.on('before the silence').reply(text('heard'));
  const [silent, other] = fleet.hubs as [FleetHub, FleetHub];
  const id = await fleet.start(silent, 'before the silence', cwd);
  await fleet.waitForStatus(other, id, 'idle');
  expect(await fleet.ownerOf(id)).toBe(silent);
  silent.proxy.set('silent');
  try {
    const timed = async (call: Promise<ApiReply>): Promise<{ status: number; ms: number }> => {
      const begun = performance.now();
      return { status: (await call).status, ms: performance.now() - begun };
    };
    const lost = { prompt: 'into the silence' };
    const answers = await Promise.all([
      timed(fleet.api(silent, 'GET', `/sessions/${id}`)),
      timed(fleet.api(silent, 'POST', `/sessions/${id}/messages`, { body: lost })),
      timed(fleet.api(silent, 'POST', `/sessions/${id}/messages`, { body: lost, key: 'silence' })),
      timed(fleet.api(silent, 'POST', '/sessions', { body: { ...lost, cwd } })),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
    // Within the store's own timeout.
    expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(15_000);
    model.on('out of the silence').reply(text('elsewhere'));
    await eventually(async () => (await fleet.store.leases()).some(({ expired }) => expired), {
      what: 'the silent hub’s lease has expired',
    });
    const body = { prompt: 'out of the silence' };
    await eventually(
      async () => (await fleet.api(other, 'POST', `/sessions/${id}/messages`, { body })).status === 200,
      { what: 'another hub continues the session', every: 500 },
    );
    expect((await fleet.waitForStatus(other, id, 'idle')).result?.result).toBe('elsewhere');
  } finally {
    silent.proxy.set('open');
  }
  await eventually(async () => (await fleet.session(silent, id)).result?.result === 'elsewhere', {
    what: 'the hub has caught up',
  });
  expect(model.requests.filter(({ body }) => JSON.stringify(body).includes('into the silence'))).toEqual([]);
});
