import { T0 } from './rows.ts';

export function manualNow(start = T0): { now: () => number; advance: (ms: number) => void } {
  let time = start;
  return { now: () => time, advance: (ms) => void (time += ms) };
}
