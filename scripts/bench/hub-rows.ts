import { setTimeout as sleep } from 'node:timers/promises';
import { builtServer } from '../../test/harness/built-server.ts';
import { openHarness, type Harness } from '../../test/harness/open-harness.ts';
import { interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';
import { reply, start } from './session-rows.ts';
import { startToList } from './stdio-start.ts';

/** Second turns of each session: they are short, so one alone would be noise. */
const TURNS = 5;
const STARTS_PER_ROUND = 3;
const SETTLE_MS = 500;

/** A client that is passed through to a hub, against one that has its server to itself. */
export async function hubRows(rounds: number): Promise<Row[]> {
  const embedded = await openHarness({ record: 'none' });
  const attached = await openHarness({ record: 'none', hub: {} });
  try {
    const turns = await interleaved(rounds, {
      embedded: () => hotTurn(embedded),
      attached: () => hotTurn(attached),
    });
    const starts = await interleaved(rounds * STARTS_PER_ROUND, {
      embedded: () => startOf(embedded),
      attached: () => startOf(attached),
    });
    return [
      compared('hub: second turn of an attached client', 1.15, turns.attached, turns.embedded),
      compared('hub: start of an attached client to tools/list', 1.05, starts.attached, starts.embedded),
    ];
  } finally {
    await embedded.close();
    await attached.close();
  }
}

async function hotTurn(harness: Harness): Promise<number> {
  harness.model.on('benchmark turn').always('Done.');
  const sessionId = await start(harness);
  const times: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) times.push(await timed(() => reply(harness, sessionId)));
  await harness.ok('claude_code_session', { action: 'cancel', sessionId });
  await sleep(SETTLE_MS);
  return median(times);
}

async function startOf(harness: Harness): Promise<number> {
  const place = { cwd: harness.project, env: harness.environment() };
  // What the other side's process left behind in the caches must not be charged to this one.
  await startToList({ file: process.execPath, args: [builtServer()], ...place });
  return (await startToList({ file: process.execPath, args: [builtServer()], ...place })).ms;
}

function compared(what: string, most: number, ours: readonly number[], embedded: readonly number[]): Row {
  const over = ratio(ours, embedded);
  return {
    what,
    target: `at most ${String(most)} × embedded`,
    measured: `${over.toFixed(2)} × (${String(round(median(ours)))} ms, embedded ${String(round(median(embedded)))} ms)`,
    reached: over <= most,
    numbers: { ratio: round(over, 3), ms: round(median(ours), 1), embeddedMs: round(median(embedded), 1) },
  };
}
