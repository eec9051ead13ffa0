/** The load balancer of a soak: calls go to any hub in service, and none may hang. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiReply, Fleet, FleetHub } from '../fleet/fleet.ts';
import type { Role } from '../../src/schema/enums.ts';
import type { Random } from './random.ts';

const MAX_KEPT = 500;

export interface FrontCall {
  readonly method: 'GET' | 'POST';
  readonly where: string;
  readonly body?: object;
  readonly role?: Role;
  readonly key?: string;
}

export class Violation extends Error {}

export class FleetFront {
  readonly fleet: Fleet;
  readonly random: Random;
  readonly counts: Record<string, number> = {};
  longestCallMs = 0;
  /** Recent error replies, for the failure report. */
  readonly #recentErrors: string[] = [];
  readonly #out = new Set<FleetHub>();
  /** When each hub was last taken out of or put back into service. */
  readonly #changedAt = new Map<FleetHub, number>();

  constructor(fleet: Fleet, random: Random) {
    this.fleet = fleet;
    this.random = random;
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  take(hub: FleetHub, state: 'out' | 'in'): void {
    if (state === 'out') this.#out.add(hub);
    else this.#out.delete(hub);
    this.#changedAt.set(hub, performance.now());
  }

  /** Recent error replies that mention `text`. */
  refusals(text: string): string {
    return this.#recentErrors.filter((line) => line.includes(text)).join('\n');
  }

  #note(line: string): void {
    this.#recentErrors.push(`${new Date().toISOString()} ${line}`);
    if (this.#recentErrors.length > MAX_KEPT) this.#recentErrors.shift();
  }

  /** Undefined if the hub was taken out of service meanwhile: the outcome is then unknown. */
  async call({ method, where, ...options }: FrontCall): Promise<ApiReply | undefined> {
    const inService = this.fleet.hubs.filter((hub) => !this.#out.has(hub));
    const hub = this.random.pick(inService);
    const begun = performance.now();
    const wasTakenOut = (): boolean => this.#out.has(hub) || (this.#changedAt.get(hub) ?? 0) >= begun;
    try {
      const reply = await this.fleet.api(hub, method, where, options);
      const ms = performance.now() - begun;
      if (reply.status >= 400)
        this.#note(`${method} ${where} at ${hub.name}: ${reply.status} after ${ms.toFixed(0)} ms, ${errorText(reply)}`);
      if (!wasTakenOut()) this.longestCallMs = Math.max(this.longestCallMs, ms);
      return reply;
    } catch (error) {
      // A timed-out call is a violation too: no call may hang.
      if (!wasTakenOut()) throw new Violation(`${method} ${where} at ${hub.name}: ${String(error)}`, { cause: error });
      this.count('unanswered calls');
      return undefined;
    }
  }

  /** Repeats the attempt until it gives a result. */
  async insist<T>(what: string, withinMs: number, attempt: () => Promise<T | undefined>): Promise<T> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const seen = await attempt();
      if (seen !== undefined) return seen;
      if (performance.now() > deadline) throw new Violation(`Not within ${withinMs} ms: ${what}`);
      await sleep(400);
    }
  }

  /** Reads from any hub until `look` finds what it needs. */
  read<T>(where: string, look: (json: ApiReply['json']) => T | undefined, withinMs = 120_000): Promise<T> {
    let last: unknown;
    return this.insist(`GET ${where}`, withinMs, async () => {
      const reply = await this.call({ method: 'GET', where });
      last = reply;
      if (reply && reply.status !== 200 && reply.status !== 503)
        throw new Violation(`GET ${where} returned ${reply.status}: ${JSON.stringify(reply.json)}`);
      return reply?.status === 200 ? look(reply.json) : undefined;
    }).catch((error: unknown) => {
      if (!(error instanceof Violation)) throw error;
      throw new Violation(`${error.message}. Last seen: ${JSON.stringify(last)?.slice(0, 3_000)}`);
    });
  }
}

function errorText({ json }: ApiReply): string {
  return String(json?.error?.message ?? JSON.stringify(json));
}
