import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DomainError } from '../errors/errors.ts';
import type { StoredLease } from '../schema/store.ts';
import { StoreConflict } from '../store/contract.ts';
import { Lease } from './lease.ts';

const BY = { hub: 'a', fence: 1 };
const LEASE: StoredLease = { ...BY, expiresAt: 0, info: {} };

let renewals: (() => Promise<StoredLease>)[];
let told: string[];
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
      onFenced: () => told.push('fenced'),
      elapsed: () => Date.now(),
    },
    Date.now(),
  );
  lease.listen({
    onRenewed: (ms) => told.push(`renewed for ${ms}`),
    onLost: () => told.push('lost'),
    onRegained: async () => void told.push(`regained, held: ${lease.held}`),
  });
}

const away = (): Promise<never> => Promise.reject(new DomainError('UNAVAILABLE', 'Postgres is unavailable'));
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
  [renewals, told, renewed] = [[], [], []];
});

afterEach(async () => {
  await lease.close();
  vi.useRealTimers();
});

test('is renewed every 2 s, and listeners are told how long it is held', async () => {
  open();
  await pass(4_000);
  expect(renewed).toEqual(Array(3).fill({ ttlMs: 15_000, host: 'here' }));
  expect(told).toEqual(Array(3).fill('renewed for 6000'));
});

test('is lost 6 s after the beginning of the last renewal, and held again only when it is known what others took', async () => {
  open();
  await pass(0);
  renewals = Array<() => Promise<never>>(10).fill(away);
  await pass(5_999);
  expect(lease.held).toBe(true);
  await pass(1);
  expect({ held: lease.held, told: told.slice(1) }).toEqual({ held: false, told: ['lost'] });
  await pass(2_000);
  expect(told.slice(2)).toEqual(['regained, held: false', 'renewed for 6000']);
  expect(lease.held).toBe(true);
});

test('is not lost to a store that is away for five seconds', async () => {
  open();
  await pass(0);
  const backAt = Date.now() + 5_000;
  renewals = Array.from({ length: 20 }, () => () => (Date.now() < backAt ? away() : Promise.resolve(LEASE)));
  await pass(20_000);
  expect({ held: lease.held, told: told.includes('lost') }).toEqual({ held: true, told: false });
});

test('counts a renewal from when it was asked for', async () => {
  open();
  await pass(0);
  renewals = [() => new Promise((resolve) => setTimeout(() => resolve(LEASE), 1_500))];
  await pass(3_500);
  expect(told.at(-1)).toBe('renewed for 4500');
});

test('one whose process was stopped is lost before anything else happens, whichever timer comes first', async () => {
  open();
  await pass(0);
  vi.setSystemTime(Date.now() + 60_000);
  expect(lease.held).toBe(false);
  await pass(2_000);
  expect(told.slice(1)).toEqual(['lost', 'regained, held: false', 'renewed for 6000']);
});

test('ends with the life of its hub', async () => {
  open();
  renewals = [() => Promise.reject(new StoreConflict('fenced', 'started again'))];
  await pass(30_000);
  expect({ told, renewals: renewed.length }).toEqual({ told: ['fenced'], renewals: 1 });
});

test('cannot be lost where nothing could be taken over', async () => {
  open(false);
  renewals = Array<() => Promise<never>>(50).fill(away);
  await pass(15_000);
  expect({ held: lease.held, told }).toEqual({ held: true, told: [] });
});
