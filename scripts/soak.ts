// The long soak: `npm run soak [-- --sessions 10 --turns 200 --seed 1]`; --check only starts and stops it. With
// `--fleet [--steps 30]` it runs several hubs on one Postgres that fail at random, with `--hub [--kills 100]` one that is
// killed and started again, with `--hub --watched` a stream, a page and rules beside it. `--all [--minutes 120]` runs all
// of them in turn until the time is up. Fails on the first violation.
import { parseArgs } from 'node:util';
import { openHarness } from '../test/harness/open-harness.ts';
import { fleetSoak } from '../test/soak/fleet-soak.ts';
import { HUB_SOAK_HARNESS, hubSoak } from '../test/soak/hub-soak.ts';
import { soak, soakHarness } from '../test/soak/soak.ts';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '10' },
    turns: { type: 'string', default: '200' },
    check: { type: 'boolean', default: false },
    fleet: { type: 'boolean', default: false },
    hub: { type: 'boolean', default: false },
    watched: { type: 'boolean', default: false },
    kills: { type: 'string', default: '100' },
    steps: { type: 'string', default: '30' },
    all: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '120' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
  },
});
const MEGABYTE = 1024 * 1024;
const MAX_GROWTH_BYTES = 40 * MEGABYTE;
const seed = Number(values.seed);
const sessions = Number(values.sessions);
const tell = (line: string): void => console.log(line);

if (values.all) await soakAll();
else if (values.fleet) await soakFleet(sessions, Number(values.steps), seed);
else if (values.hub) await soakHub(sessions, Number(values.kills), seed, values.watched);
else await soakEmbedded(values.check ? 0 : sessions, values.check ? 0 : Number(values.turns), seed);

/** Small parts in turn, each with a seed of its own: a part that fails can be repeated alone. */
async function soakAll(): Promise<void> {
  const begun = performance.now();
  const minutes = (): number => (performance.now() - begun) / 60_000;
  let rounds = 0;
  for (; minutes() < Number(values.minutes); rounds++) {
    const own = seed + rounds;
    tell(`round ${String(rounds + 1)}, after ${minutes().toFixed(0)} minutes`);
    await soakEmbedded(6, 25, own);
    await soakHub(10, 25, own, true);
    await soakFleet(10, 11, own);
  }
  tell(`all: ${String(rounds)} rounds in ${minutes().toFixed(0)} minutes, seeds from ${String(seed)}`);
}

async function soakFleet(sessions: number, steps: number, seed: number): Promise<void> {
  const end = begin(`--fleet --sessions ${String(sessions)} --steps ${String(steps)} --seed ${String(seed)}`);
  const { counts, longestCallMs } = await fleetSoak({ sessions, steps, seed, tell });
  end(counts, `longest call ${longestCallMs.toFixed(0)} ms`);
}

async function soakHub(sessions: number, kills: number, seed: number, watched: boolean): Promise<void> {
  const flags = `--hub${watched ? ' --watched' : ''}`;
  const end = begin(`${flags} --sessions ${String(sessions)} --kills ${String(kills)} --seed ${String(seed)}`);
  const h = await openHarness(HUB_SOAK_HARNESS);
  try {
    const { counts, refusals, startsMs } = await hubSoak(h, { sessions, kills, seed, watched, tell });
    const sorted = startsMs.toSorted((a, b) => a - b);
    end(counts, '0 lost, 0 twice, 0 leaked');
    tell(`calls that ended in a named error: ${JSON.stringify(refusals)}`);
    tell(`start of a hub: median ${(sorted[sorted.length >> 1] ?? 0).toFixed(0)} ms`);
  } finally {
    await h.close();
  }
}

async function soakEmbedded(sessions: number, turns: number, seed: number): Promise<void> {
  const end = begin(`--sessions ${String(sessions)} --turns ${String(turns)} --seed ${String(seed)}`);
  // Beside other work a fork may take longer than its original would otherwise be remembered.
  const h = await openHarness(soakHarness(sessions, sessions === 0 ? 1_000 : 60_000));
  try {
    const { counts, heapBefore, heapAfter } = await soak(h, { sessions, turns, seed, tell });
    const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(1);
    end(counts, `heap ${megabytes(heapBefore)} MB before, ${megabytes(heapAfter)} MB after`);
    if (heapAfter - heapBefore > MAX_GROWTH_BYTES) throw new Error('The heap has grown.');
  } finally {
    await h.close();
  }
}

/** Says how to repeat it; the returned function says how long it took. */
function begin(args: string): (counts: Readonly<Record<string, number>>, more: string) => void {
  const begun = performance.now();
  tell(`soak: npm run soak -- ${args}`);
  return (counts, more) => {
    tell(`done in ${((performance.now() - begun) / 1000).toFixed(0)} s: ${JSON.stringify(counts)}, ${more}`);
  };
}
