// The long soak: `npm run soak [-- --sessions 10 --turns 200 --seed 1]`; with --check it is one short session. Fails on the first violation.
import { parseArgs } from 'node:util';
import { openHarness } from '../test/harness/open-harness.ts';
import { soak, soakHarness } from '../test/soak/soak.ts';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '10' },
    turns: { type: 'string', default: '200' },
    check: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
  },
});
const size = values.check
  ? { sessions: 1, turns: 1 }
  : { sessions: Number(values.sessions), turns: Number(values.turns) };
const plan = { ...size, seed: Number(values.seed) };
const MEGABYTE = 1024 * 1024;
const MAX_GROWTH_BYTES = 40 * MEGABYTE;

console.log(`soak: ${plan.sessions} sessions, ${plan.turns} turns each, seed ${plan.seed}`);
const begin = performance.now();
const h = await openHarness(soakHarness(plan.sessions));
try {
  const report = await soak(h, { ...plan, tell: (line) => console.log(line) });
  const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(1);
  console.log(`done in ${((performance.now() - begin) / 1000).toFixed(0)} s: ${JSON.stringify(report.counts)}`);
  console.log(`heap: ${megabytes(report.heapBefore)} MB before, ${megabytes(report.heapAfter)} MB after`);
  if (report.heapAfter - report.heapBefore > MAX_GROWTH_BYTES) throw new Error('The heap has grown.');
} finally {
  await h.close();
}
