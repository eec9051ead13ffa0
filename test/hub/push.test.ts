import { expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../src/engine/clock.ts';
import type { AuditRecord } from '../../src/engine/ports.ts';
import { Pusher } from '../../src/hub/notify/pusher.ts';
import { newPushKeys, PushSender } from '../../src/hub/notify/web-push.ts';
import type { Change, HubRef, StoredRequest } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { openPushService, senderOf, type PushService, type TestBrowser } from '../harness/push-service.ts';
import { manualNow } from '../store/manual-now.ts';
import { allow, ask, put, request, session, settle, subscription, T0, token } from '../store/rows.ts';
import { afterThisTest, STORES } from '../store/stores.ts';

const REMIND_MS = 600_000;
const DAY_MS = 24 * 3_600_000;

interface World {
  readonly store: Store;
  readonly service: PushService;
  readonly audit: AuditRecord[];
  readonly pusher: Pusher;
  /** Another hub on the same store. */
  another(): Pusher;
  /** The store's clock. */
  advance(ms: number): void;
  subscribe(browser: TestBrowser, more?: Parameters<typeof subscription>[1]): Promise<void>;
  write(...changes: Change[]): Promise<void>;
  /** A new request in the session `s1`, asked now. */
  ask(id: string, more?: Partial<StoredRequest>): Promise<StoredRequest>;
}

async function openWorld({ kind = 'sqlite' }: { kind?: Store['kind'] } = {}): Promise<World> {
  const clock = manualNow(T0 + 1000);
  const store = await STORES[kind]({ now: clock.now });
  const { hub, fence } = await store.acquireLease('hub-1', 60_000, {});
  const by: HubRef = { hub, fence };
  const service = await openPushService();
  onTestFinished(() => service.close());
  const audit: AuditRecord[] = [];
  const keys = newPushKeys();
  const open = (): Pusher => {
    const pusher = new Pusher({
      store,
      sender: new PushSender({
        keys,
        hosts: [service.host],
        contact: 'mailto:me@example.org',
        now: Date.now,
        ca: service.ca,
      }),
      remindAfterMs: REMIND_MS,
      clock: new SystemClock(),
      audit: { record: (entry) => void audit.push(entry) },
      warn: (line) => {
        throw new Error(line);
      },
    });
    pusher.start();
    afterThisTest(() => pusher.close());
    return pusher;
  };
  await store.write(
    [
      { type: 'token.put', token: token('t_anna') },
      { type: 'token.put', token: token('t_carl') },
      { type: 'session.put', session: session('s1', by, { state: { tag: 'waiting' } }) },
    ],
    by,
  );
  const pusher = open();
  return {
    store,
    service,
    audit,
    pusher,
    another: open,
    advance(ms) {
      clock.advance(ms);
      pusher.look();
    },
    async subscribe({ name, subscription: { endpoint, keys: browserKeys } }, more) {
      await pusher.subscribe(subscription(`p_${name}`, { endpoint, ...browserKeys, ...more }));
    },
    write: (...changes) => store.write(changes, by),
    async ask(id, more) {
      const row = request('s1', id, { createdAt: clock.now(), ...more });
      await store.write([ask(row)], by);
      return row;
    },
  };
}

test('a request is announced to each browser, encrypted and signed, without a word of what is asked', async () => {
  const world = await openWorld();
  const [phone, laptop] = [world.service.browser('phone'), world.service.browser('laptop')];
  await world.subscribe(phone);
  await world.subscribe(laptop);
  const secretive = {
    toolName: 'Bash',
    input: { command: 'curl secret.example' },
    cwd: '/secret',
    said: 'secret words',
  };
  await world.ask('request-one', { ask: secretive });
  await expect.poll(() => [phone.told(), laptop.told()]).toEqual([['open request-one'], ['open request-one']]);
  const [arrival] = phone.arrivals;
  expect(arrival?.payload).toEqual({
    state: 'open',
    requestId: 'request-one',
    kind: 'permission',
    tool: 'Bash',
    ageMs: 0,
  });
  expect(arrival?.headers).toMatchObject({ 'content-encoding': 'aes128gcm', urgency: 'high', ttl: '86400' });
  expect(JSON.stringify(arrival?.headers)).not.toMatch(/secret|request-one/);
  expect(arrival?.body.toString('latin1')).not.toMatch(/secret|Bash|request-one/);
  expect(await senderOf(arrival!)).toMatchObject({
    publicKey: world.pusher.publicKey,
    claims: { aud: `https://${world.service.host}`, sub: 'mailto:me@example.org', exp: expect.any(Number) as number },
  });
  // Their length says nothing about them either.
  await world.ask('r2', { ask: { toolName: `mcp__${'long'.repeat(30)}`, input: {} } });
  await expect.poll(() => phone.arrivals).toHaveLength(2);
  expect(phone.arrivals[1]?.body.length).toBe(arrival?.body.length);
});

test('each of several requests is announced under its own topic, and replaced when it is settled, wherever that was', async () => {
  const world = await openWorld();
  const [phone, laptop] = [world.service.browser('phone'), world.service.browser('laptop')];
  await world.subscribe(phone);
  await world.subscribe(laptop);
  const asked = await Promise.all(['r1', 'r2', 'r3'].map((id) => world.ask(id)));
  await expect.poll(() => phone.told().sort()).toEqual(['open r1', 'open r2', 'open r3']);
  await expect.poll(() => laptop.told()).toHaveLength(3);
  await world.write(settle(asked[1]!, allow('someone else')));
  for (const browser of [phone, laptop]) await expect.poll(() => browser.told().at(-1)).toBe('settled r2');
  const topics = (id: string) =>
    phone.arrivals.flatMap(({ payload, headers }) =>
      'requestId' in payload && payload.requestId === id ? [headers['topic']] : [],
    );
  expect(new Set(topics('r2')).size).toBe(1);
  expect(new Set(['r1', 'r2', 'r3'].flatMap(topics)).size).toBe(3);
  expect(phone.arrivals.at(-1)?.headers['urgency']).toBe('normal');
});

test('an unanswered request is announced again, at most three times, and a settled one no more', async () => {
  const world = await openWorld();
  const phone = world.service.browser('phone');
  await world.subscribe(phone);
  const [first] = [await world.ask('r1'), await world.ask('r2')];
  await expect.poll(() => phone.told()).toHaveLength(2);
  await world.write(settle(first));
  await expect.poll(() => phone.told().at(-1)).toBe('settled r1');
  for (let reminders = 1; reminders <= 3; reminders++) {
    world.advance(REMIND_MS);
    await expect.poll(() => phone.told().filter((one) => one === 'open r2')).toHaveLength(1 + reminders);
    expect(phone.arrivals.at(-1)?.payload).toMatchObject({ ageMs: reminders * REMIND_MS });
  }
  world.advance(REMIND_MS);
  const asked = await world.ask('r3');
  await expect.poll(() => phone.told().at(-1)).toBe('open r3');
  expect(phone.told().filter((one) => one === 'open r2')).toHaveLength(4);
  await world.write(settle(request('s1', 'r2')), settle(asked));
  await expect.poll(() => phone.told().slice(-2).sort()).toEqual(['settled r2', 'settled r3']);
});

test('whoever may not see a request is not told of it', async () => {
  const world = await openWorld();
  const [hers, his] = [world.service.browser('hers'), world.service.browser('his')];
  await world.subscribe(hers);
  await world.subscribe(his, { credential: 't_carl', principal: 'token:t_carl', readsAll: false });
  await world.ask('r1');
  await expect.poll(() => hers.told()).toEqual(['open r1']);
  const own = { ...(await world.store.session('s1'))!, id: 's2', principal: 'token:t_carl' };
  await world.write(put(own), ask(request('s2', 'r2', { createdAt: T0 + 5000 })));
  await expect.poll(() => his.told()).toEqual(['open r2']);
  await expect.poll(() => hers.told()).toEqual(['open r1', 'open r2']);
});

test('a subscription ends when the browser has gone or its credential was revoked', async () => {
  const world = await openWorld();
  const [phone, laptop] = [world.service.browser('phone'), world.service.browser('laptop')];
  await world.subscribe(phone);
  await world.subscribe(laptop, { credential: 't_carl' });
  world.service.respondWith((response, { browser }) => response.writeHead(browser === 'phone' ? 410 : 201).end());
  await world.ask('r1');
  await expect.poll(async () => (await world.store.subscriptions()).map(({ id }) => id)).toEqual(['p_laptop']);
  expect(world.audit).toMatchObject([{ what: 'push subscription', outcome: 'ended by the browser' }]);
  await expect.poll(() => laptop.told()).toEqual(['open r1']);
  await world.write({ type: 'token.put', token: token('t_carl', { revokedAt: T0 }) });
  await world.ask('r2');
  await world.subscribe(world.service.browser('tablet'));
  await world.ask('r3');
  await expect.poll(() => world.service.arrivals.map(({ browser }) => browser)).toContain('tablet');
  expect(laptop.told()).toEqual(['open r1']);
});

test('a failed message is sent again, later when the service says so, and given up after a day', async () => {
  const world = await openWorld();
  const phone = world.service.browser('phone');
  await world.subscribe(phone);
  world.service.respondWith((response) => response.writeHead(503).end());
  await world.ask('r1');
  await expect.poll(() => phone.told()).toHaveLength(1);
  world.service.respondWith((response) => response.writeHead(429, { 'retry-after': '120' }).end());
  world.advance(1_000);
  await expect.poll(() => phone.told()).toHaveLength(2);
  world.advance(119_000);
  await expect.poll(() => world.pusher.counts.failed).toBe(2);
  expect(phone.told()).toHaveLength(2);
  world.service.respondWith((response) => response.writeHead(500).end());
  world.advance(1_000 + 2_000);
  await expect.poll(() => phone.told()).toHaveLength(3);
  world.advance(DAY_MS);
  await expect
    .poll(() => world.audit)
    .toMatchObject([
      { what: 'push notification', outcome: 'dropped', details: { request: 'r1', subscription: 'p_phone' } },
    ]);
  // Only this message is lost.
  world.service.respondWith((response) => response.writeHead(201).end());
  await world.ask('r2');
  await expect.poll(() => phone.told().at(-1)).toBe('open r2');
});

test('a redirect is not followed', async () => {
  const world = await openWorld();
  const [phone, elsewhere] = [world.service.browser('phone'), world.service.browser('elsewhere')];
  await world.subscribe(phone);
  world.service.respondWith((response) => response.writeHead(307, { location: elsewhere.subscription.endpoint }).end());
  await world.ask('r1');
  await expect.poll(() => world.pusher.counts.failed).toBe(1);
  expect(elsewhere.told()).toEqual([]);
});

test('one browser that hangs holds up no other', async () => {
  const world = await openWorld();
  const [hanging, phone] = [world.service.browser('hanging'), world.service.browser('phone')];
  await world.subscribe(hanging);
  await world.subscribe(phone);
  world.service.respondWith((response, { browser }) => {
    if (browser === 'phone') response.writeHead(201).end();
  });
  const asked = await Promise.all(Array.from({ length: 20 }, (_, index) => world.ask(`r${index}`)));
  await expect.poll(() => phone.told(), { timeout: 5_000 }).toHaveLength(20);
  await world.write(settle(asked[0]!));
  await expect.poll(() => phone.told().at(-1)).toBe('settled r0');
  expect(hanging.told()).toHaveLength(1);
});

test.each(['sqlite', 'postgres'] as const)('with several hubs on %s each message is sent once', async (kind) => {
  const world = await openWorld({ kind });
  world.another();
  world.another();
  const phone = world.service.browser('phone');
  await world.subscribe(phone);
  const asked: StoredRequest[] = [];
  for (let index = 0; index < 12; index++) asked.push(await world.ask(`r${index}`));
  await expect.poll(() => phone.told(), { timeout: 10_000 }).toHaveLength(12);
  await world.write(...asked.map((one) => settle(one)));
  await expect.poll(() => phone.told(), { timeout: 10_000 }).toHaveLength(24);
  expect(new Set(phone.told()).size).toBe(24);
});

test('what was not sent when a hub stopped is sent by the next one', async () => {
  const world = await openWorld();
  const phone = world.service.browser('phone');
  await world.subscribe(phone);
  const asked = await world.ask('r1');
  await expect.poll(() => phone.told()).toEqual(['open r1']);
  await world.pusher.close();
  await world.write(settle(asked));
  await world.ask('r2');
  world.another();
  await expect.poll(() => phone.told().slice(1).sort()).toEqual(['open r2', 'settled r1']);
});
