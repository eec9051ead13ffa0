import type dns from 'node:dns';
import { createECDH, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { isPublicAddress, newPushKeys, PushSender } from './web-push.ts';

test.each([
  ['8.8.8.8', true],
  ['172.32.0.1', true],
  ['2607:f8b0:4004:800::200a', true],
  ['127.0.0.1', false],
  ['10.1.2.3', false],
  ['172.31.255.255', false],
  ['192.168.1.1', false],
  ['169.254.169.254', false],
  ['100.64.0.1', false],
  ['0.0.0.0', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::1', false],
  ['::', false],
  ['fe80::1', false],
  ['fd00::1', false],
  ['::ffff:8.8.8.8', false],
  ['64:ff9b::7f00:1', false],
  ['2002:7f00:1::', false],
  ['2001:db8::1', false],
  ['not an address', false],
])('%s is public: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic);
});

test('a push service whose name leads to a private address is not connected to', async () => {
  const looked: string[] = [];
  const lookup = ((name: string, _options: object, callback: (error: null, found: object[]) => void) => {
    looked.push(name);
    callback(null, [
      { address: '8.8.8.8', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ]);
  }) as unknown as typeof dns.lookup;
  const sender = new PushSender({
    ...{ keys: newPushKeys(), hosts: [], contact: 'mailto:me@example.org' },
    ...{ now: Date.now, lookup },
  });
  const p256dh = createECDH('prime256v1').generateKeys('base64url');
  const target = { endpoint: 'https://fcm.googleapis.com/1', p256dh, auth: randomBytes(16).toString('base64url') };
  const message = { payload: '{}', urgency: 'high', ttlSeconds: 60 } as const;
  expect(await sender.send(target, message, new AbortController().signal)).toEqual({
    outcome: 'failed',
    why: 'fcm.googleapis.com leads to a private address',
  });
  expect(looked).toEqual(['fcm.googleapis.com']);
});

test('key pairs are always whole, also those that begin with zeros', () => {
  for (let index = 0; index < 600; index++) {
    const { publicKey, privateKey } = newPushKeys();
    expect([publicKey.length, privateKey.length]).toEqual([87, 43]);
  }
});
