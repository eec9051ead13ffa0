import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../src/engine/clock.ts';
import type { AuditRecord } from '../../src/engine/ports.ts';
import { note, notifyTarget, type Note, type NotifyTarget } from '../../src/hub/notify/notify-target.ts';
import { Notifier } from '../../src/hub/notify/notify.ts';
import type { HubRef, StoredSession } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { ManualClock } from '../harness/manual-clock.ts';
import { allow, ask, put, request, session, settle } from '../store/rows.ts';
import { afterThisTest, STORES, temporaryDirectory } from '../store/stores.ts';

interface Received {
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
  readonly note: Note;
}

/** A local webhook receiver with scripted responses. */
async function openReceiver(answer: (response: ServerResponse, count: number) => void = ok) {
  const received: Received[] = [];
  let respond = answer;
  const server = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on('data', (piece: Buffer) => pieces.push(piece));
    incoming.on('end', () => {
      const body = Buffer.concat(pieces).toString();
      received.push({ body, headers: incoming.headers, note: note.parse(JSON.parse(body)) });
      respond(response, received.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(close);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return {
    url,
    received,
    notes: () => received.map((one) => one.note),
    respondWith: (responder: typeof answer) => (respond = responder),
    close,
  };
}

function ok(response: ServerResponse): void {
  response.writeHead(204).end();
}

function fail(response: ServerResponse): void {
  response.writeHead(500).end('no');
}

interface World {
  readonly store: Store;
  readonly hub: HubRef;
  readonly audit: AuditRecord[];
  readonly notifier: Notifier;
  write(...changes: Parameters<Store['write']>[0]): Promise<void>;
}

async function openNotifier(
  target: NotifyTarget,
  given: Partial<{ store: Store; clock: ManualClock }> = {},
): Promise<World> {
  const store = given.store ?? (await STORES.sqlite());
  const { hub, fence } = await store.acquireLease('hub-1', 60_000, {});
  const audit: AuditRecord[] = [];
  const notifier = new Notifier({
    store,
    hub: { hub, fence },
    target,
    url: 'http://127.0.0.1:7433',
    clock: given.clock ?? new SystemClock(),
    audit: { record: (entry) => void audit.push(entry) },
    warn: (line) => {
      throw new Error(line);
    },
  });
  await notifier.start();
  afterThisTest(() => notifier.close());
  const by = { hub, fence };
  return { store, hub: by, audit, notifier, write: (...changes) => store.write(changes, by) };
}

const at = (world: World, id: string, tag: StoredSession['state']['tag'], turns = 1) =>
  put(session(id, world.hub, { state: { tag }, totals: { turns, costUsd: turns } }));

test('an open request and the end of a turn are sent as short, signed notes', async () => {
  const receiver = await openReceiver();
  const world = await openNotifier(notifyTarget(receiver.url, 'the secret'));
  const secretive = { toolName: 'Bash', input: { command: 'curl secret.example' }, said: 'secret words' };
  await world.write(at(world, 's1', 'running'));
  await world.write(at(world, 's1', 'waiting'), ask(request('s1', 'r1', { ask: secretive })));
  await expect
    .poll(() => receiver.notes())
    .toMatchObject([
      {
        type: 'request.opened',
        session: { id: 's1', status: 'waiting_permission' },
        request: { id: 'r1', kind: 'permission', toolName: 'Bash' },
        link: 'http://127.0.0.1:7433/#/sessions/s1',
      },
    ]);
  await world.write(settle(request('s1', 'r1'), allow()), at(world, 's1', 'idle', 2));
  await expect.poll(() => receiver.notes().map(({ type }) => type)).toEqual(['request.opened', 'session.rested']);
  for (const { body, headers } of receiver.received) {
    const signature = `sha256=${createHmac('sha256', 'the secret').update(body).digest('hex')}`;
    expect(headers['x-hub-signature-256']).toBe(signature);
    expect(body).not.toContain('secret');
  }
});

test('a note is sent each time a session comes to rest, but not when its row is only stored again', async () => {
  const receiver = await openReceiver();
  const world = await openNotifier(notifyTarget(receiver.url, undefined));
  const rests = () => receiver.notes().filter(({ type }) => type === 'session.rested').length;
  await world.write(at(world, 's1', 'running'));
  await world.write(at(world, 's1', 'idle'));
  await expect.poll(rests).toBe(1);
  await world.write(at(world, 's1', 'idle'));
  // A turn that starts and ends between two polls counts too.
  await world.write(at(world, 's1', 'idle', 2));
  await expect.poll(rests).toBe(2);
  await world.write(at(world, 's1', 'running', 2));
  await world.write(at(world, 's1', 'interrupted', 2));
  await expect.poll(rests).toBe(3);
  expect(receiver.received[0]?.headers['x-hub-signature-256']).toBeUndefined();
});

test('nothing from before the first start is sent', async () => {
  const store = await STORES.sqlite();
  const first = await openNotifier(async () => ({ ok: true }), { store });
  await first.notifier.close();
  await store.write([{ type: 'setting.put', key: 'notify.hub-1', value: '{}' }]);
  await first.write(at(first, 's1', 'idle'), ask(request('s1', 'r1')));
  const sent: string[] = [];
  const second = await openNotifier(async (text) => (sent.push(text), { ok: true }), { store });
  await second.write(put(session('s2', second.hub, { state: { tag: 'error' } })));
  await expect.poll(() => sent).toHaveLength(1);
  expect(sent[0]).toContain('s2');
});

test('notes of a session keep their order while the first is retried; other sessions do not wait', async () => {
  const clock = new ManualClock();
  let isDown = true;
  const receiver = await openReceiver();
  receiver.respondWith((response) => {
    const { session: of } = receiver.received.at(-1)?.note ?? { session: undefined };
    if (isDown && of?.id === 's1') fail(response);
    else ok(response);
  });
  const world = await openNotifier(notifyTarget(receiver.url, undefined), { clock });
  await world.write(at(world, 's1', 'waiting'), at(world, 's2', 'waiting'));
  await world.write(ask(request('s1', 'r1')), ask(request('s1', 'r2')), ask(request('s2', 'r3')));
  const ids = () => receiver.notes().map(({ request: of }) => of?.id);
  await expect.poll(ids).toEqual(expect.arrayContaining(['r1', 'r3']));
  expect(ids()).not.toContain('r2');
  // Not before 1 s, then 2 s.
  for (const [wait, count] of [
    [999, 2],
    [1, 3],
    [1_999, 3],
    [1, 4],
  ] as const) {
    await expect.poll(() => clock.alarms).toBe(1);
    clock.advance(wait);
    await expect.poll(() => receiver.received.length).toBe(count);
  }
  isDown = false;
  await expect.poll(() => clock.alarms).toBe(1);
  clock.advance(4_000);
  await expect.poll(() => ids().slice(2)).toEqual(['r1', 'r1', 'r1', 'r2']);
  expect(world.notifier.counts).toEqual({ delivered: 3, failed: 3, dropped: 0 });
});

test('notes to a dead receiver are dropped after a day, and the audit log says so', async () => {
  const clock = new ManualClock();
  const receiver = await openReceiver();
  await receiver.close();
  const world = await openNotifier(notifyTarget(receiver.url, undefined), { clock });
  await world.write(at(world, 's1', 'waiting'), ask(request('s1', 'r1')));
  await expect.poll(() => world.notifier.pending).toBe(1);
  for (let tries = 0; world.notifier.pending > 0; tries++) {
    expect(tries).toBeLessThan(400);
    const hasFailed = (): boolean => clock.alarms > 0 || world.notifier.pending === 0;
    await eventually(hasFailed, { every: 1, what: 'the attempt fails' });
    clock.advance(300_000);
  }
  expect(clock.wallTime()).toBeGreaterThanOrEqual(24 * 3_600_000);
  expect(clock.wallTime()).toBeLessThan(25 * 3_600_000);
  expect(world.audit).toMatchObject([
    {
      kind: 'server',
      session: 's1',
      what: 'notification request.opened',
      outcome: 'dropped',
      details: { request: 'r1' },
    },
  ]);
});

test('undelivered notes are sent after a restart, in order, and nothing is sent twice', async () => {
  const store = await STORES.sqlite();
  const receiver = await openReceiver(fail);
  const before = await openNotifier(notifyTarget(receiver.url, undefined), { store });
  await before.write(at(before, 's0', 'running'), at(before, 's1', 'waiting'));
  await before.write(ask(request('s1', 'r1')));
  await expect.poll(() => receiver.received.length).toBeGreaterThan(0);
  await before.write(ask(request('s1', 'r2')));
  await before.notifier.close();
  // Written while no notifier is running.
  await before.write(ask(request('s1', 'r3')), at(before, 's0', 'idle', 2));
  receiver.received.length = 0;
  receiver.respondWith(ok);
  const after = await openNotifier(notifyTarget(receiver.url, undefined), { store });
  await store.claimSessions(after.hub, ['s0', 's1']);
  await expect.poll(() => receiver.received.length).toBe(4);
  const ofOne = receiver.notes().filter(({ session: { id } }) => id === 's1');
  expect(ofOne.map(({ request: of }) => of?.id)).toEqual(['r1', 'r2', 'r3']);
  // What was received but not acknowledged would be sent again, under the same id.
  await expect.poll(() => after.notifier.pending).toBe(0);
  await after.notifier.close();
  // A third incarnation has nothing left to send.
  const third = await openNotifier(notifyTarget(receiver.url, undefined), { store });
  await store.claimSessions(third.hub, ['s0', 's1']);
  await third.write(put(session('s9', third.hub, { state: { tag: 'running' } })), ask(request('s9', 'r9')));
  await expect.poll(() => receiver.notes().at(-1)?.request?.id).toBe('r9');
  expect(receiver.received).toHaveLength(5);
});

test('redirects are not followed', async () => {
  const elsewhere = await openReceiver();
  const receiver = await openReceiver((response) => response.writeHead(307, { location: elsewhere.url }).end());
  const world = await openNotifier(notifyTarget(receiver.url, undefined));
  await world.write(at(world, 's1', 'waiting'), ask(request('s1', 'r1')));
  await expect.poll(() => world.notifier.counts.failed).toBe(1);
  expect(elsewhere.received).toEqual([]);
});

test('a command gets the note on stdin, and is run again if it fails', async () => {
  const directory = await temporaryDirectory();
  const file = path.join(directory, 'notes');
  const script = path.join(directory, 'take.mjs');
  await writeFile(
    script,
    `import fs from 'node:fs';
     if (!fs.existsSync(${JSON.stringify(`${file}.tried`)})) { fs.writeFileSync(${JSON.stringify(`${file}.tried`)}, ''); process.exit(3); }
     fs.appendFileSync(${JSON.stringify(file)}, fs.readFileSync(0, 'utf8') + '\\n');`,
  );
  const world = await openNotifier(notifyTarget(`"${process.execPath}" "${script}"`, 'secret'));
  await world.write(at(world, 's1', 'waiting'), ask(request('s1', 'r1')));
  await expect.poll(() => world.notifier.counts.delivered, { timeout: 10_000 }).toBe(1);
  expect(note.parse(JSON.parse(await readFile(file, 'utf8')))).toMatchObject({ request: { id: 'r1' } });
  expect(world.notifier.counts).toEqual({ delivered: 1, failed: 1, dropped: 0 });
});

test('a receiver that never answers holds up neither other work nor shutdown', async () => {
  const receiver = await openReceiver(() => undefined);
  const world = await openNotifier(notifyTarget(receiver.url, undefined));
  await world.write(at(world, 's1', 'waiting'), ask(request('s1', 'r1')));
  await expect.poll(() => receiver.received.length).toBe(1);
  await world.write(at(world, 's1', 'running'));
  await world.notifier.close();
  expect(JSON.parse((await world.store.setting('notify.hub-1')) ?? '')).toMatchObject({ pending: [{ attempts: 0 }] });
});
