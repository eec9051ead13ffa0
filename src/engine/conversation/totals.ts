import type { TotalsRecord } from '../../schema/records.ts';

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
  readonly #session: { turns: number; costUsd: number };
  #call: CallSums = emptyCall();
  #counted: number;
  /** API time is a running total too, but where a resumed process starts is not recorded. */
  #countedApiMs: number | undefined = 0;
  #costKnown: boolean;
  /** The model was called, and no result has reported the cost yet. */
  #spending = false;
  #turnEnded = false;
  #lost: boolean;
  #days: Record<string, number> = {};

  constructor({ turns, costUsd, costUnknown }: Sums = { turns: 0, costUsd: 0 }) {
    this.#session = { turns, costUsd };
    this.#counted = costUsd;
    this.#costKnown = costUsd > 0;
    this.#lost = costUnknown === true;
  }

  /** As left by an earlier server process. */
  restore(kept: Omit<TotalsRecord, 'costKnown'>): void {
    const { turns, costUsd, call, costUnknown, countedUsd, spending, lost, days } = kept;
    Object.assign(this.#session, { turns, costUsd });
    this.#call = { ...call };
    this.#costKnown = call.results > 0 || costUsd > 0;
    this.#counted = countedUsd ?? Infinity;
    this.#spending = spending === true;
    this.#lost = lost ?? (costUnknown === true && !this.#spending);
    this.#turnEnded = costUnknown === true;
    this.#days = { ...days };
  }

  /** As it is stored and shown. Made for every poll, so fields are assigned instead of spread. */
  get record(): TotalsRecord {
    const { turns, costUsd, costUnknown } = this.session;
    const record: TotalsRecord = { turns, costUsd, costKnown: this.#costKnown, call: { ...this.#call } };
    if (costUnknown) record.costUnknown = true;
    if (Number.isFinite(this.#counted)) record.countedUsd = this.#counted;
    if (this.#spending) record.spending = true;
    if (this.#lost) record.lost = true;
    if (Object.keys(this.#days).length > 0) record.days = { ...this.#days };
    return record;
  }

  /**
   * A process was started whose running total begins at this figure. `recorded`: the last process of this session wrote
   * it down when it exited, together with the cost of a turn that it did not finish; one that was killed wrote nothing.
   */
  beginProcess(startsAtUsd: number, recorded = false, at?: number): void {
    const unreported = recorded ? startsAtUsd - this.#counted : 0;
    if (unreported > 0) {
      this.#spent(unreported, at);
      this.#costKnown = true;
      // A call that goes on after its process was parked also pays for what came before.
      if (!this.#turnEnded) this.#call.costUsd += unreported;
      this.#spending = false;
    }
    this.#lost ||= this.#spending;
    this.#spending = false;
    this.#counted = startsAtUsd;
    this.#countedApiMs = startsAtUsd === 0 ? 0 : undefined;
  }

  beginCall(): void {
    this.#call = emptyCall();
  }

  /** Claude Code has called the model; only a result reports what that cost. */
  spends(): void {
    this.#spending = true;
    this.#turnEnded = false;
  }

  /** How long a call took that ended without a result of Claude Code. */
  endedWithoutResult(durationMs: number): void {
    if (this.#call.results === 0) this.#call.durationMs = Math.round(durationMs);
  }

  /** If it is still spending, its process has ended without a result: only its last words in the transcript can tell. */
  endTurn(): void {
    this.#turnEnded = true;
  }

  add(result: ResultFigures, at?: number): void {
    this.#spending = false;
    const cost = Math.max(0, result.cumulativeCostUsd - this.#counted);
    this.#counted = result.cumulativeCostUsd;
    this.#session.turns += result.numTurns;
    this.#spent(cost, at);
    this.#costKnown = true;
    this.#call.results++;
    this.#call.costUsd += cost;
    this.#call.turns += result.numTurns;
    this.#call.durationMs += result.durationMs;
    this.#call.durationApiMs += this.#apiShare(result);
    for (const [name, value] of Object.entries(result.usage)) {
      if (typeof value === 'number') this.#call.usage[name] = (this.#call.usage[name] ?? 0) + value;
    }
  }

  /** `at`: time of day, if it is worth knowing on which day it was. */
  #spent(costUsd: number, at: number | undefined): void {
    this.#session.costUsd += costUsd;
    if (at === undefined) return;
    const day = dayOf(at);
    if (costUsd > 0) this.#days[day] = (this.#days[day] ?? 0) + costUsd;
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
    return { ...this.#session, ...((this.#lost || (this.#spending && this.#turnEnded)) && { costUnknown: true }) };
  }
}

/** Dollars as people read them: sums of differences carry rounding noise in the last digits. */
export function roundUsd(costUsd: number): number {
  return Number(costUsd.toFixed(6));
}

/** `2026-11-18`, by this machine's clock. */
function dayOf(at: number): string {
  const date = new Date(at);
  const two = (part: number): string => String(part).padStart(2, '0');
  return `${String(date.getFullYear())}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function emptyCall(): CallSums {
  return { results: 0, turns: 0, costUsd: 0, durationMs: 0, durationApiMs: 0, usage: {} };
}
