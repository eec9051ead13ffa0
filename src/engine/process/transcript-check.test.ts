import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import { TranscriptCheck } from './transcript-check.ts';

test('a turn that is not on disk is reported once, until a later one is', async () => {
  const clock = new ManualClock();
  const written = new Set(['a']);
  let missing = 0;
  const check = new TranscriptCheck({
    clock,
    isWritten: async (id) => written.has(id),
    onMissing: () => missing++,
  });
  const turn = async (id: string): Promise<number> => {
    check.delivered(id);
    check.turnEnded();
    clock.advance(60_000);
    await new Promise((resolve) => setImmediate(resolve));
    return missing;
  };
  expect([await turn('a'), await turn('b'), await turn('c')]).toEqual([0, 1, 1]);
  written.add('d');
  expect([await turn('d'), await turn('e')]).toEqual([1, 2]);
});

test('a turn is not looked for while the next one runs', async () => {
  const clock = new ManualClock();
  let looks = 0;
  const check = new TranscriptCheck({
    clock,
    isWritten: async () => ++looks > 0,
    onMissing: () => undefined,
  });
  check.delivered('a');
  check.turnEnded();
  check.delivered('b');
  clock.advance(60_000);
  expect(looks).toBe(0);
});
