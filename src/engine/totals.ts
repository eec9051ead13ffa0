export interface Sums {
  turns: number;
  costUsd: number;
}

export interface ResultFigures {
  numTurns: number;
  cumulativeCostUsd: number;
  durationMs: number;
  durationApiMs: number;
  usage: Record<string, unknown>;
}

export interface CallSums extends Sums {
  durationMs: number;
  durationApiMs: number;
  usage: Record<string, number>;
}

/**
 * What a call and a session cost. Claude Code reports cost as a running sum over the whole transcript, so each share is a
 * difference; a resumed process starts from the sum its transcript knows, which is less than ours after a crash.
 */
export class Totals {
  readonly #session: Sums;
  #call: CallSums = emptyCall();
  #counted = 0;

  constructor(inherited: Sums = { turns: 0, costUsd: 0 }) {
    this.#session = { ...inherited };
  }

  /** A process was started whose running sum begins at this figure. */
  beginProcess(startsAtUsd: number): void {
    this.#counted = startsAtUsd;
  }

  beginCall(): void {
    this.#call = emptyCall();
  }

  add(result: ResultFigures): void {
    const cost = Math.max(0, result.cumulativeCostUsd - this.#counted);
    this.#counted = result.cumulativeCostUsd;
    this.#session.turns += result.numTurns;
    this.#session.costUsd += cost;
    this.#call.turns += result.numTurns;
    this.#call.costUsd += cost;
    this.#call.durationMs += result.durationMs;
    this.#call.durationApiMs += result.durationApiMs;
    for (const [name, value] of Object.entries(result.usage)) {
      if (typeof value === 'number') this.#call.usage[name] = (this.#call.usage[name] ?? 0) + value;
    }
  }

  get call(): Readonly<CallSums> {
    return this.#call;
  }

  get session(): Readonly<Sums> {
    return this.#session;
  }
}

/** Dollars as people read them: sums of differences carry dust in the last digits. */
export function roundUsd(costUsd: number): number {
  return Number(costUsd.toFixed(6));
}

function emptyCall(): CallSums {
  return { turns: 0, costUsd: 0, durationMs: 0, durationApiMs: 0, usage: {} };
}
