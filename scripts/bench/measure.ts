/** Helpers for measuring: everything is compared within one run, by medians. */

import path from 'node:path';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/** Runs the contestants in turn, in a different order each round, so that other load on the machine affects them alike. */
export async function interleaved<Name extends string>(
  rounds: number,
  contestants: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contestants) as Name[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (let index = 0; index < names.length; index++) {
      const name = names[(index + round) % names.length];
      if (name !== undefined) times[name].push(await contestants[name]());
    }
  }
  return times;
}

/** The median of the ratios of each round: a slow moment slows both sides of a round. */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, round) => value / (to[round] ?? Number.NaN)));
}

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}

/** A script next to the running one, for what is measured in a separate process. */
export function besideScript(name: string): string {
  return path.join(path.dirname(process.argv[1] ?? ''), name);
}
