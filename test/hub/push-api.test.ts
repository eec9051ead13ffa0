import { expect, onTestFinished, test } from 'vitest';
import type { ApiError } from '../../src/schema/api.ts';
import type { PushAnswer, PushSubscriptionAnswer } from '../../src/schema/api-admin.ts';
import { openPushService, type PushService, type TestBrowser } from '../harness/push-service.ts';
import { openAccessWorld, type AccessWorld, type Headers } from './access-world.ts';

const SUBSCRIPTIONS = '/api/v1/push/subscriptions';

async function openWorld(): Promise<{ world: AccessWorld; service: PushService }> {
  const service = await openPushService();
  onTestFinished(() => service.close());
  return { world: await openAccessWorld({ pushService: service }), service };
}

async function subscribe(world: AccessWorld, who: Headers, { subscription, name }: TestBrowser): Promise<string> {
  const { status, text } = await world.call('POST', SUBSCRIPTIONS, who, {
    ...subscription,
    expirationTime: null,
    name,
  });
  expect([status, text]).toEqual([201, expect.any(String)]);
  return (JSON.parse(text) as PushSubscriptionAnswer).subscription.id;
}

async function listed(world: AccessWorld, who: Headers): Promise<PushAnswer> {
  return JSON.parse((await world.call('GET', '/api/v1/push', who)).text) as PushAnswer;
}

test('a browser subscribes, hears of what opens and is settled, and of nothing once it has signed out', async () => {
  const { world, service } = await openWorld();
  const [signedIn, other] = [await world.browser('approver'), await world.browser('approver')];
  const [phone, laptop] = [service.browser('phone'), service.browser('laptop')];
  await subscribe(world, signedIn, phone);
  await subscribe(world, other, laptop);
  expect((await listed(world, signedIn)).subscriptions).toMatchObject([
    { name: 'phone', service: service.host, current: true },
    { name: 'laptop', current: false },
  ]);
  const { requestId } = await world.make('waiting');
  await expect.poll(() => [phone.told(), laptop.told()]).toEqual([[`open ${requestId}`], [`open ${requestId}`]]);
  const answered = await world.call('POST', `/api/v1/requests/${requestId}/answer`, other, { decision: 'deny' });
  expect(answered.status).toBe(200);
  await expect.poll(() => phone.told()).toEqual([`open ${requestId}`, `settled ${requestId}`]);
  expect((await world.call('DELETE', '/api/v1/sign-in', signedIn)).status).toBe(204);
  await world.make('waiting');
  await expect.poll(() => laptop.told()).toHaveLength(3);
  expect(phone.told()).toHaveLength(2);
  expect((await listed(world, other)).subscriptions).toMatchObject([{ name: 'laptop' }]);
});

test('an open page keeps nothing back: its browser is told too, since nobody may be looking at it', async () => {
  const { world, service } = await openWorld();
  const signedIn = await world.browser('approver');
  const phone = service.browser('phone');
  await subscribe(world, signedIn, phone);
  const page = new AbortController();
  onTestFinished(() => page.abort());
  const stream = await fetch(`${world.url}/api/v1/events`, { headers: signedIn, signal: page.signal });
  expect(stream.status).toBe(200);
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let seen = '';
  const sees = async (words: string): Promise<void> => {
    while (!seen.includes(words)) seen += (await reader.read()).value ?? '';
  };
  await sees('event: live');
  const { requestId } = await world.make('waiting');
  await sees(`"requestId":"${requestId}"`);
  await expect.poll(() => phone.told()).toEqual([`open ${requestId}`]);
});

test('each principal has its own subscriptions, and a caller hears only of its own sessions', async () => {
  const { world, service } = await openWorld();
  const [owner, other] = [world.token('owner'), world.token('other')];
  const [hers, his] = [service.browser('hers'), service.browser('his')];
  const id = await subscribe(world, owner, hers);
  await subscribe(world, other, his);
  expect((await listed(world, other)).subscriptions).toHaveLength(1);
  expect((await world.call('DELETE', `${SUBSCRIPTIONS}/${id}`, other)).status).toBe(404);
  expect((await world.call('POST', `${SUBSCRIPTIONS}/${id}/test`, other, {})).status).toBe(404);
  const { requestId } = await world.make('waiting');
  await expect.poll(() => hers.told()).toEqual([`open ${requestId}`]);
  expect((await world.call('POST', `${SUBSCRIPTIONS}/${id}/test`, owner, {})).status).toBe(200);
  expect(hers.told().at(-1)).toBe('test');
  expect(his.told()).toEqual([]);
  expect((await world.call('DELETE', `${SUBSCRIPTIONS}/${id}`, owner)).status).toBe(200);
  expect((await listed(world, owner)).subscriptions).toEqual([]);
});

test('a test says why it failed, and ends a subscription that the browser has given up', async () => {
  const { world, service } = await openWorld();
  const owner = world.token('owner');
  const phone = service.browser('phone');
  const id = await subscribe(world, owner, phone);
  service.respondWith((response) => response.writeHead(403).end());
  const refused = await world.call('POST', `${SUBSCRIPTIONS}/${id}/test`, owner, {});
  expect([refused.status, (JSON.parse(refused.text) as ApiError).error.message]).toEqual([
    503,
    'The notification was not accepted: the push service answered 403.',
  ]);
  service.respondWith((response) => response.writeHead(410).end());
  expect((await world.call('POST', `${SUBSCRIPTIONS}/${id}/test`, owner, {})).status).toBe(404);
  expect((await listed(world, owner)).subscriptions).toEqual([]);
});

test('only push services can be subscribed to, with valid keys', async () => {
  const { world, service } = await openWorld();
  const owner = world.token('owner');
  const { subscription } = service.browser('phone');
  const { host } = service;
  const attempt = async (more: object): Promise<number> =>
    (await world.call('POST', SUBSCRIPTIONS, owner, { ...subscription, ...more })).status;
  const refused = [
    `http://${host}/phone`,
    'https://localhost/phone',
    'https://127.0.0.1:7433/',
    'https://169.254.169.254/latest/meta-data',
    'https://fcm.googleapis.com:8443/fcm/send/1',
    'https://fcm.googleapis.com.evil.example/1',
    'https://evilpush.services.mozilla.com/1',
    `https://me:secret@${host}/phone`,
    `https://${host}@evil.example/phone`,
    'not a url',
  ];
  for (const endpoint of refused) expect([endpoint, await attempt({ endpoint })]).toEqual([endpoint, 400]);
  const { keys } = subscription;
  for (const bad of [
    { p256dh: '', auth: keys.auth },
    { ...keys, auth: 'AAAA' },
    { ...keys, p256dh: 'BA'.repeat(44) },
  ])
    expect(await attempt({ keys: bad })).toBe(400);
  for (const endpoint of [
    'https://fcm.googleapis.com/fcm/send/1',
    'https://updates.push.services.mozilla.com/wpush/v2/1',
    'https://wns2-am3p.notify.windows.com/w/?token=1',
    'https://web.push.apple.com/1',
  ])
    expect([endpoint, await attempt({ endpoint })]).toEqual([endpoint, 201]);
});
