import { setTimeout as sleep } from 'node:timers/promises';
import { builtServer } from '../../test/harness/built-server.ts';
import { openHarness, type Harness } from '../../test/harness/open-harness.ts';
import { interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';
import { reply, start } from './session-rows.ts';
import { startToList } from './stdio-start.ts';

/** Turns per session after the first: they are short, so a single one would be noise. */
const TURNS = 12;
const STARTS_PER_ROUND = 3;
const SETTLE_MS = 500;

/** A client attached to a hub, compared with one that has its own server. */
export async function hubRows(rounds: number): Promise<Row[]> {
  const embedded = await openHarness({ record: 'none' });
  const attached = await openHarness({ record: 'none', hub: {} });
  try {
    for (const { model } of [embedded, attached]) model.on('benchmark turn').always('Done.');
    const turns = { embedded: [] as number[], attached: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      const times = await hotTurns(embedded, attached);
      turns.embedded.push(median(times.embedded));
      turns.attached.push(median(times.attached));
    }
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

/** One session per side, turn by turn, so that a slow moment of the machine affects both sides alike. */
async function hotTurns(embedded: Harness, attached: Harness): Promise<Record<'embedded' | 'attached', number[]>> {
  const sides = { embedded: await start(embedded), attached: await start(attached) };
  const times = await interleaved(TURNS, {
    embedded: () => timed(() => reply(embedded, sides.embedded)),
    attached: () => timed(() => reply(attached, sides.attached)),
  });
  await embedded.ok('claude_code_session', { action: 'cancel', sessionId: sides.embedded });
  await attached.ok('claude_code_session', { action: 'cancel', sessionId: sides.attached });
  await sleep(SETTLE_MS);
  return times;
}

async function startOf(harness: Harness): Promise<number> {
  const place = { cwd: harness.project, env: harness.environment() };
  // A first start, so that caches filled by the other side do not count against this one.
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
