import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DomainError } from '../errors/errors.ts';
import type { StoredLease } from '../schema/store.ts';
import { StoreConflict } from '../store/contract.ts';
import { Lease } from './lease.ts';

const BY = { hub: 'a', fence: 1 };
const LEASE: StoredLease = { ...BY, expiresAt: 0, info: {} };

let renewals: (() => Promise<StoredLease>)[];
let events: string[];
let renewed: Record<string, unknown>[];
let lease: Lease;

function open(isShared = true): void {
  const next = (): Promise<StoredLease> => renewals.shift()?.() ?? Promise.resolve(LEASE);
  lease = new Lease(
    {
      store: { renewLease: (_by, ttlMs, info) => (renewed.push({ ttlMs, ...info }), next()) },
      by: BY,
      info: () => ({ host: 'here' }),
      isShared,
      log: () => undefined,
      onFenced: () => events.push('fenced'),
      elapsed: () => Date.now(),
    },
    Date.now(),
  );
  lease.listen({
    onRenewed: (ms) => events.push(`renewed for ${ms}`),
    onLost: () => events.push('lost'),
    onRegained: async () => void events.push(`regained, held: ${lease.held}`),
  });
}

const away = (): Promise<never> => Promise.reject(new DomainError('UNAVAILABLE', 'Postgres is unavailable'));
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
  [renewals, events, renewed] = [[], [], []];
});

afterEach(async () => {
  await lease.close();
  vi.useRealTimers();
});

test('the lease is renewed every 2 s, and tells listeners how long it is held', async () => {
  open();
  await pass(4_000);
  expect(renewed).toEqual(Array(3).fill({ ttlMs: 15_000, host: 'here' }));
  expect(events).toEqual(Array(3).fill('renewed for 6000'));
});

test('the lease is lost 6 s after the last renewal began, and held again only after onRegained has finished', async () => {
  open();
  await pass(0);
  renewals = Array<() => Promise<never>>(10).fill(away);
  await pass(5_999);
  expect(lease.held).toBe(true);
  await pass(1);
  expect({ held: lease.held, events: events.slice(1) }).toEqual({ held: false, events: ['lost'] });
  await pass(2_000);
  expect(events.slice(2)).toEqual(['regained, held: false', 'renewed for 6000']);
  expect(lease.held).toBe(true);
});

test('the lease survives a store outage of five seconds', async () => {
  open();
  await pass(0);
  const backAt = Date.now() + 5_000;
  renewals = Array.from({ length: 20 }, () => () => (Date.now() < backAt ? away() : Promise.resolve(LEASE)));
  await pass(20_000);
  expect({ held: lease.held, events: events.includes('lost') }).toEqual({ held: true, events: false });
});

test('the time a lease is held counts from when its renewal was requested', async () => {
  open();
  await pass(0);
  renewals = [() => new Promise((resolve) => setTimeout(() => resolve(LEASE), 1_500))];
  await pass(3_500);
  expect(events.at(-1)).toBe('renewed for 4500');
});

test('the lease is lost as soon as a suspended process resumes, whichever timer fires first', async () => {
  open();
  await pass(0);
  vi.setSystemTime(Date.now() + 60_000);
  expect(lease.held).toBe(false);
  await pass(2_000);
  expect(events.slice(1)).toEqual(['lost', 'regained, held: false', 'renewed for 6000']);
});

test('the lease ends when the store fences its hub', async () => {
  open();
  renewals = [() => Promise.reject(new StoreConflict('fenced', 'started again'))];
  await pass(30_000);
  expect({ events, renewals: renewed.length }).toEqual({ events: ['fenced'], renewals: 1 });
});

test('the lease cannot be lost when the store is not shared', async () => {
  open(false);
  renewals = Array<() => Promise<never>>(50).fill(away);
  await pass(15_000);
  expect({ held: lease.held, events }).toEqual({ held: true, events: [] });
});
