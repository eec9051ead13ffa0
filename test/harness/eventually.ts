/** Waits for a condition, with a deadline and a message that says what was seen instead. */

import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

export interface Patience {
  /** Milliseconds. */
  readonly within?: number;
  /** Milliseconds between attempts. Grows by default, since an attempt may be expensive. */
  readonly every?: number;
  /** What is being waited for, for the failure message. */
  readonly what: string;
}

type Falsy = false | 0 | '' | null | undefined;

/** Calls `attempt` until it returns something truthy, and returns that. If it throws (an assertion), it is called again. */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  { within = 40_000, every, what }: Patience,
): Promise<Exclude<T, Falsy>> {
  const startedAt = performance.now();
  // An attempt that hangs must not outlive the deadline.
  const timeUp = sleep(within, undefined, { ref: false });
  let last: Outcome<T> | undefined;
  for (;;) {
    const outcome = await Promise.race([outcomeOf(attempt), timeUp]);
    if (outcome === undefined) break;
    if ('value' in outcome && isTruthy(outcome.value)) return outcome.value;
    last = outcome;
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs >= within) break;
    await sleep(every ?? gapAfter(elapsedMs));
  }
  throw new Error(`Not within ${within} ms: ${what}. Last seen: ${report(last)}`);
}

function gapAfter(elapsedMs: number): number {
  return Math.min(10 + elapsedMs / 20, 50);
}

function report(outcome: Outcome<unknown> | undefined): string {
  if (outcome === undefined) return 'nothing: the first attempt did not finish';
  return 'value' in outcome ? describe(outcome.value) : `it threw ${messageOf(outcome.error)}`;
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

async function outcomeOf<T>(attempt: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await attempt() };
  } catch (error) {
    return { error };
  }
}

function isTruthy<T>(value: T): value is Exclude<T, Falsy> {
  return Boolean(value);
}

function describe(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: 120, maxStringLength: 500 });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
