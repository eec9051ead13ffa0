/** Several hubs on one Postgres compared with one, and the cost of using a session that another hub runs. */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import pg from 'pg';
import type { Change } from '../../src/schema/store.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import { startPostgres } from '../../test/harness/postgres.ts';
import { besideScript, median, round, timed } from './measure.ts';
import type { Row } from './row.ts';

export type HubJob =
  | { readonly kind: 'start'; readonly count: number }
  | { readonly kind: 'turns'; readonly ids: readonly string[] }
  | { readonly kind: 'poll' | 'reply'; readonly id: string; readonly rounds: number };

export interface HubJobDone {
  readonly ids: string[];
  readonly ms: number[];
  readonly cpuMs: number;
}

const HUBS = 3;
const AT_WORK = 300;
const SESSIONS = 100_000;
const OPEN_REQUESTS = 1_000;

export async function fleetRows(): Promise<Row[]> {
  const postgres = await startPostgres();
  const hubs: BenchHub[] = [];
  try {
    for (let n = 0; n < HUBS; n++) hubs.push(await BenchHub.start(postgres.url, `bench-${n}`));
    await Promise.all(hubs.map((hub) => hub.run({ kind: 'start', count: 5 })));
    return [await scaleRow(postgres.url, hubs), ...(await detourRows(hubs)), await largeRow(postgres.url)];
  } finally {
    for (const hub of hubs) await hub.close();
    await postgres.remove();
  }
}

class BenchHub {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(url: string, name: string): Promise<BenchHub> {
    const program = besideScript('bench-fleet-hub.mjs');
    const child = fork(program, [url, name]);
    await once(child, 'message');
    return new BenchHub(child);
  }

  async run(job: HubJob): Promise<HubJobDone> {
    const done = once(this.#child, 'message');
    this.#child.send(job);
    return ((await done) as [HubJobDone])[0];
  }

  async close(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}

interface Load {
  readonly startsPerSecond: number;
  readonly turnsPerSecond: number;
  /** Postgres's share of the processor time. */
  readonly storeShare: number;
}

async function loadOn(url: string, hubs: readonly BenchHub[]): Promise<Load> {
  const count = AT_WORK / hubs.length;
  const before = await postgresCpuMs(url);
  let cpuMs = 0;
  let ids: string[][] = [];
  const startMs = await timed(async () => {
    const done = await Promise.all(hubs.map((hub) => hub.run({ kind: 'start', count })));
    ids = done.map((one) => one.ids);
    cpuMs += done.reduce((sum, one) => sum + one.cpuMs, 0);
  });
  const turnsMs = await timed(async () => {
    const done = await Promise.all(hubs.map((hub, n) => hub.run({ kind: 'turns', ids: ids[n] ?? [] })));
    cpuMs += done.reduce((sum, one) => sum + one.cpuMs, 0);
  });
  const storeMs = (await postgresCpuMs(url)) - before;
  return {
    startsPerSecond: (AT_WORK * 1000) / startMs,
    turnsPerSecond: (AT_WORK * 1000) / turnsMs,
    storeShare: storeMs / (storeMs + cpuMs),
  };
}

async function scaleRow(url: string, hubs: readonly BenchHub[]): Promise<Row> {
  const [one] = hubs;
  if (!one) throw new Error('no hub');
  const loads: { one: Load; three: Load }[] = [];
  for (let n = 0; n < 3; n++) loads.push({ one: await loadOn(url, [one]), three: await loadOn(url, hubs) });
  const starts = median(loads.map((load) => load.three.startsPerSecond / load.one.startsPerSecond));
  const turns = median(loads.map((load) => load.three.turnsPerSecond / load.one.turnsPerSecond));
  const share = median(loads.map((load) => load.three.storeShare));
  const cores = os.availableParallelism();
  const hasCores = cores > HUBS;
  return {
    what: `${HUBS} hubs against one on Postgres: starts a second, and turns a second of ${AT_WORK} sessions at work`,
    target: `at least 2.2 × where the machine has a core for each; this one has ${cores}`,
    measured: `${starts.toFixed(2)} ×, ${turns.toFixed(2)} ×; of the processor time Postgres used ${Math.round(100 * share)} %`,
    reached: hasCores ? starts >= 2.2 && turns >= 2.2 : undefined,
    numbers: {
      starts: round(starts, 2),
      turns: round(turns, 2),
      storeShare: round(share, 2),
      startsPerSecond: round(median(loads.map((load) => load.three.startsPerSecond))),
      turnsPerSecond: round(median(loads.map((load) => load.three.turnsPerSecond))),
    },
  };
}

async function detourRows([owner, other]: readonly BenchHub[]): Promise<Row[]> {
  if (!owner || !other) throw new Error('no hubs');
  const [id = ''] = (await owner.run({ kind: 'start', count: 1 })).ids;
  const measure = async (kind: 'poll' | 'reply', rounds: number): Promise<{ here: number; there: number }> => {
    const here: number[] = [];
    const there: number[] = [];
    // Enough rounds for Postgres to finish cleaning up after the previous rows.
    for (let n = 0; n < 15; n++) {
      here.push(...(await owner.run({ kind, id, rounds })).ms);
      there.push(...(await other.run({ kind, id, rounds })).ms);
    }
    return { here: median(here), there: median(there) };
  };
  const row = (what: string, most: number, { here, there }: { here: number; there: number }): Row => ({
    what,
    target: `at most ${most} ms more`,
    measured: `${(there - here).toFixed(2)} ms more (${there.toFixed(2)}, ${here.toFixed(2)})`,
    reached: there - here <= most,
    numbers: { hereMs: round(here, 2), thereMs: round(there, 2) },
  });
  return [
    row('a poll at a hub that does not run the session, against one that does', 3, await measure('poll', 50)),
    row('a reply through another hub', 15, await measure('reply', 10)),
  ];
}

async function largeRow(url: string): Promise<Row> {
  const store = await openPostgresStore({ url });
  try {
    const { hub, fence } = await store.acquireLease('bench-large', 600_000, {});
    const by = { hub, fence };
    const runsOn = by;
    const session = (n: number): Change => ({
      type: 'session.put',
      session: {
        ...{ id: `large-${n}`, runsOn, principal: `p${n % 100}`, title: `Task ${n}`, cwd: `/srv/work/project-${n}` },
        ...{ options: { permissionMode: 'default' }, secretNames: [], workspace: { type: 'directory' }, totals: {} },
        ...{ state: { tag: n < OPEN_REQUESTS ? 'waiting' : 'idle' }, createdAt: n, lastActiveAt: n },
      },
    });
    const request = (n: number): Change => ({
      type: 'request.open',
      request: { id: `r${n}`, sessionId: `large-${n}`, kind: 'permission', ask: { toolName: 'Bash' }, createdAt: n },
    });
    for (let first = 0; first < SESSIONS; first += 1_000) {
      const some = Array.from({ length: 1_000 }, (_, n) => first + n);
      await store.write([...some.map(session), ...some.filter((n) => n < OPEN_REQUESTS).map(request)], by);
    }
    const times: Record<string, number> = {};
    const measure = async (name: string, work: () => Promise<unknown>): Promise<void> => {
      const each: number[] = [];
      for (let n = 0; n < 20; n++) each.push(await timed(work));
      times[name] = round(median(each), 1);
    };
    await measure('list', () => store.sessions({ limit: 50 }));
    await measure('own', () => store.sessions({ limit: 50, principal: 'p7', tags: ['idle'] }));
    await measure('inbox', () => store.inbox({ limit: 50 }));
    await measure('own inbox', () => store.inbox({ limit: 50, principal: 'p7' }));
    const slowest = Math.max(...Object.values(times));
    return {
      what: `${SESSIONS.toLocaleString('en-US')} sessions and ${OPEN_REQUESTS.toLocaleString('en-US')} open requests in Postgres: list and inbox`,
      target: 'under 150 ms',
      measured: Object.entries(times)
        .map(([name, ms]) => `${name} ${ms} ms`)
        .join(', '),
      reached: slowest < 150,
      numbers: times,
    };
  } finally {
    await store.close();
  }
}

/** Processor time of all processes of this Postgres so far; 0 if unknown on this system. */
async function postgresCpuMs(url: string): Promise<number> {
  if (process.platform !== 'linux') return 0;
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>(
    'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
  );
  await client.end();
  const ticks = await Promise.all(
    rows.map(async ({ pid }) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
    }),
  );
  return 10 * ticks.reduce((sum, one) => sum + one, 0);
}
