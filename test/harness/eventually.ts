/** Waiting on a condition, with a deadline and a message that says what was seen instead. */

import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

export interface Patience {
  /** Milliseconds. */
  readonly within?: number;
  /** Milliseconds between two looks. By default more and more, as a look may be expensive. */
  readonly every?: number;
  /** What is being waited for, for the failure message. */
  readonly what: string;
}

type Falsy = false | 0 | '' | null | undefined;

/** Looks until it sees something truthy, and returns it. A look that throws (an assertion) counts as "not yet". */
export async function eventually<T>(
  look: () => T | Promise<T>,
  { within = 40_000, every, what }: Patience,
): Promise<Exclude<T, Falsy>> {
  const begun = performance.now();
  // A look that hangs must not outlive the deadline.
  const timeUp = sleep(within, undefined, { ref: false });
  let last: Outcome<T> | undefined;
  for (;;) {
    const outcome = await Promise.race([attempt(look), timeUp]);
    if (outcome === undefined) break;
    if ('value' in outcome && isTruthy(outcome.value)) return outcome.value;
    last = outcome;
    const elapsedMs = performance.now() - begun;
    if (elapsedMs >= within) break;
    await sleep(every ?? gapAfter(elapsedMs));
  }
  throw new Error(`Not within ${within} ms: ${what}. Last seen: ${tell(last)}`);
}

function gapAfter(elapsedMs: number): number {
  return Math.min(10 + elapsedMs / 20, 50);
}

function tell(outcome: Outcome<unknown> | undefined): string {
  if (outcome === undefined) return 'nothing: the first look did not end';
  return 'value' in outcome ? describe(outcome.value) : `it threw ${messageOf(outcome.error)}`;
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

async function attempt<T>(look: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await look() };
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
