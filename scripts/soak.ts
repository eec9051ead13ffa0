// The long soak: `npm run soak [-- --sessions 10 --turns 200 --seed 1]`; --check only starts and stops it. With
// `--fleet [--steps 30]` it runs several hubs on one Postgres that fail at random, with `--hub [--kills 100]` one that is
// killed and started again. Fails on the first violation.
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
    kills: { type: 'string', default: '100' },
    steps: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
  },
});
const seed = Number(values.seed);
const tell = (line: string): void => console.log(line);
const begin = performance.now();
const seconds = (): string => ((performance.now() - begin) / 1000).toFixed(0);
await (values.fleet ? soakFleet() : values.hub ? soakHub() : soakOne());

async function soakFleet(): Promise<void> {
  const plan = { sessions: Number(values.sessions), steps: Number(values.steps), seed };
  console.log(`soak: three hubs, ${plan.sessions} sessions, ${plan.steps} steps, seed ${seed}`);
  const { counts, longestCallMs } = await fleetSoak({ ...plan, tell });
  console.log(`done in ${seconds()} s: ${JSON.stringify(counts)}`);
  console.log(`longest call: ${longestCallMs.toFixed(0)} ms`);
}

async function soakHub(): Promise<void> {
  const plan = { sessions: Number(values.sessions), kills: Number(values.kills), seed };
  console.log(`soak: one hub, ${plan.sessions} sessions, ${plan.kills} kills, seed ${seed}`);
  const h = await openHarness(HUB_SOAK_HARNESS);
  try {
    const { counts, refusals, startsMs } = await hubSoak(h, { ...plan, tell });
    const sorted = startsMs.toSorted((a, b) => a - b);
    console.log(`done in ${seconds()} s: ${JSON.stringify(counts)}, 0 lost, 0 twice, 0 leaked`);
    console.log(`calls that ended in a named error: ${JSON.stringify(refusals)}`);
    console.log(`start of a hub: median ${(sorted[sorted.length >> 1] ?? 0).toFixed(0)} ms`);
  } finally {
    await h.close();
  }
}

async function soakOne(): Promise<void> {
  const MEGABYTE = 1024 * 1024;
  const MAX_GROWTH_BYTES = 40 * MEGABYTE;
  const size = values.check
    ? { sessions: 0, turns: 0 }
    : { sessions: Number(values.sessions), turns: Number(values.turns) };
  console.log(`soak: ${size.sessions} sessions, ${size.turns} turns each, seed ${seed}`);
  const h = await openHarness(soakHarness(size.sessions, values.check ? 1_000 : undefined));
  try {
    const report = await soak(h, { ...size, seed, tell });
    const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(1);
    console.log(`done in ${seconds()} s: ${JSON.stringify(report.counts)}`);
    console.log(`heap: ${megabytes(report.heapBefore)} MB before, ${megabytes(report.heapAfter)} MB after`);
    if (report.heapAfter - report.heapBefore > MAX_GROWTH_BYTES) throw new Error('The heap has grown.');
  } finally {
    await h.close();
  }
}
