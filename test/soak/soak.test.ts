import { expect, onTestFailed, test } from 'vitest';
import { startHarness } from '../harness/harness.ts';
import { soak, soakHarness } from './soak.ts';

const SESSIONS = 3;
const TURNS = 6;
const MEGABYTE = 1024 * 1024;

/** For a long soak, use `npm run soak`. */
test(
  'concurrent sessions survive interrupts, cancels, forks, parks, crashes and denials',
  { timeout: 240_000 },
  async () => {
    const seed = Math.floor(Math.random() * 1e6);
    onTestFailed(() =>
      console.error(`To repeat: npm run soak -- --sessions ${SESSIONS} --turns ${TURNS} --seed ${seed}`),
    );
    const h = await startHarness(soakHarness(SESSIONS));
    const { counts, heapBefore, heapAfter } = await soak(h, { sessions: SESSIONS, turns: TURNS, seed });
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(SESSIONS * TURNS + 2);
    expect(heapAfter - heapBefore).toBeLessThan(15 * MEGABYTE);
  },
);
