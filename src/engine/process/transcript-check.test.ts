import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import { TranscriptCheck } from './transcript-check.ts';

test('a turn that is not on disk is reported once, until a later one is', async () => {
  const clock = new ManualClock();
  const written = new Set(['a']);
  let missing = 0;
  const session = {
    id: 's',
    turnNotWritten: (): void => {
      missing++;
    },
  };
  const check = new TranscriptCheck(session, { clock, isWritten: async (_session, id) => written.has(id) });
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
  const session = { id: 's', turnNotWritten: () => undefined };
  const check = new TranscriptCheck(session, { clock, isWritten: async () => ++looks > 0 });
  check.delivered('a');
  check.turnEnded();
  check.delivered('b');
  clock.advance(60_000);
  expect(looks).toBe(0);
  // The process ends before the look is due: there is nothing to wait for any more.
  check.turnEnded();
  check.processEnded();
  expect(looks).toBe(1);
  clock.advance(60_000);
  check.processEnded();
  expect(looks).toBe(1);
});
