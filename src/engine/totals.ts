export interface Sums {
  turns: number;
  costUsd: number;
  /** The true cost is higher: a turn whose process was killed never reported what it cost. */
  costUnknown?: true;
}

export interface ResultFigures {
  numTurns: number;
  cumulativeCostUsd: number;
  durationMs: number;
  durationApiMs: number;
  usage: Record<string, unknown>;
}

export interface CallSums extends Sums {
  /** Results so far; before the first one the cost is unknown. */
  results: number;
  durationMs: number;
  durationApiMs: number;
  usage: Record<string, number>;
}

/**
 * What a call and a session cost. Claude Code reports cost as a running total over the whole transcript, so each share
 * is a difference; a resumed process starts from the total in its transcript, which is less than ours after a crash.
 */
export class Totals {
  readonly #session: Sums;
  #call: CallSums = emptyCall();
  #counted = 0;
  /** API time is a running total too, but where a resumed process starts is not recorded. */
  #countedApiMs: number | undefined = 0;
  #costKnown: boolean;
  /** The model is working, and no result has reported the cost yet. */
  #spending = false;

  constructor(inherited: Sums = { turns: 0, costUsd: 0 }) {
    this.#session = { ...inherited };
    this.#costKnown = inherited.costUsd > 0;
  }

  /** As left by an earlier server process. */
  restore({ call, ...session }: Sums & { readonly call: CallSums }): void {
    Object.assign(this.#session, session);
    this.#call = { ...call };
    this.#costKnown = call.results > 0 || session.costUsd > 0;
    this.#spending = false;
  }

  /** A process was started whose running total begins at this figure. */
  beginProcess(startsAtUsd: number): void {
    this.#counted = startsAtUsd;
    this.#countedApiMs = startsAtUsd === 0 ? 0 : undefined;
  }

  beginCall(): void {
    this.#call = emptyCall();
  }

  /** Claude Code has called the model; only a result reports what that cost. */
  spends(): void {
    this.#spending = true;
  }

  /** The turn has ended; if it is still spending, its process was killed. Only the result carries a price. */
  endTurn(): void {
    if (this.#spending) this.#session.costUnknown = true;
    this.#spending = false;
  }

  add(result: ResultFigures): void {
    this.#spending = false;
    const cost = Math.max(0, result.cumulativeCostUsd - this.#counted);
    this.#counted = result.cumulativeCostUsd;
    this.#session.turns += result.numTurns;
    this.#session.costUsd += cost;
    this.#call.results++;
    this.#costKnown = true;
    this.#call.turns += result.numTurns;
    this.#call.costUsd += cost;
    this.#call.durationMs += result.durationMs;
    this.#call.durationApiMs += this.#apiShare(result);
    for (const [name, value] of Object.entries(result.usage)) {
      if (typeof value === 'number') this.#call.usage[name] = (this.#call.usage[name] ?? 0) + value;
    }
  }

  /**
   * The first result of a resumed process may include the total of its predecessors: it cannot have taken longer than
   * its own lifetime.
   */
  #apiShare({ durationApiMs, durationMs }: ResultFigures): number {
    const counted = this.#countedApiMs;
    this.#countedApiMs = durationApiMs;
    return counted === undefined ? Math.min(durationApiMs, durationMs) : Math.max(0, durationApiMs - counted);
  }

  get call(): Readonly<CallSums> {
    return this.#call;
  }

  /** Before the first result the cost is unknown, unless it was inherited. */
  get costKnown(): boolean {
    return this.#costKnown;
  }

  get session(): Readonly<Sums> {
    return this.#session;
  }
}

/** Dollars as people read them: sums of differences carry rounding noise in the last digits. */
export function roundUsd(costUsd: number): number {
  return Number(costUsd.toFixed(6));
}

function emptyCall(): CallSums {
  return { results: 0, turns: 0, costUsd: 0, durationMs: 0, durationApiMs: 0, usage: {} };
}
