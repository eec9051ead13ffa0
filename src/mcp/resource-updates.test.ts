import { expect, test } from 'vitest';
import { ManualClock } from '../../test/harness/manual-clock.ts';
import { deferred } from '../engine/clock.ts';
import type { EngineClient } from '../engine/client.ts';
import { watchResources } from './resource-updates.ts';

type Notice = Parameters<Parameters<EngineClient['onNotice']>[0]>[0];

function watched(stored: () => Promise<void> | undefined) {
  const clock = new ManualClock();
  const told: string[] = [];
  let notice: (notice: Notice) => void = () => undefined;
  const onNotice: EngineClient['onNotice'] = (listener) => {
    notice = listener;
    return () => undefined;
  };
  const stop = watchResources(
    { clock, onNotice, stored },
    { updated: (uri) => told.push(uri), listChanged: () => told.push('list') },
  );
  const happens = (kind: 'added' | 'changed', sessionId: string): void =>
    notice({ kind, sessionId, owner: 'local', atRest: false, totals: { turns: 0, costUsd: 0 } });
  return { clock, told, happens, stop };
}

test('a new session is announced only once it is stored, with what happened until then', async () => {
  const first = deferred<void>();
  const outcomes = [first.promise, Promise.reject(new Error('away')), Promise.resolve()];
  const { clock, told, happens } = watched(() => outcomes.shift());
  happens('added', 'one');
  clock.advance(1_000);
  happens('changed', 'two');
  await Promise.resolve();
  expect(told).toEqual([]);
  first.resolve();
  await first.promise;
  expect(told).toEqual(['list', 'claude-code://sessions', 'claude-code://sessions/one']);
  // The store is away, then there again.
  clock.advance(500);
  await new Promise(setImmediate);
  expect(told).toHaveLength(3);
  clock.advance(500);
  await new Promise(setImmediate);
  expect(told.slice(3)).toEqual(['claude-code://sessions', 'claude-code://sessions/two']);
});

test('what changes again and again while the store is slow is announced once', async () => {
  const slow = deferred<void>();
  const outcomes = [slow.promise];
  const { clock, told, happens } = watched(() => outcomes.shift());
  happens('changed', 'one');
  for (let seconds = 0; seconds < 5; seconds++) {
    clock.advance(1_000);
    happens('changed', 'two');
  }
  slow.resolve();
  await slow.promise;
  clock.advance(500);
  expect(told).toEqual([
    'claude-code://sessions',
    'claude-code://sessions/one',
    'claude-code://sessions',
    'claude-code://sessions/two',
  ]);
});

test('without a store each change is announced within half a second, and nothing after the end', () => {
  const { clock, told, happens, stop } = watched(() => undefined);
  happens('changed', 'one');
  clock.advance(500);
  expect(told).toEqual(['claude-code://sessions', 'claude-code://sessions/one']);
  happens('changed', 'two');
  stop();
  clock.advance(500);
  expect(told).toHaveLength(2);
});
