import { eventually } from '../../test/harness/eventually.ts';
import { openHarness, type Harness } from '../../test/harness/open-harness.ts';
import { interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';
import { start } from './session-rows.ts';

const PROMPT = 'benchmark start';

/** Two servers, one of them with a spare; each start waits until the previous spare has been replaced. */
export async function prewarmRow(rounds: number): Promise<Row> {
  const cold = await openHarness();
  const warm = await openHarness({ env: { CLAUDE_CODE_MCP_PREWARM: '1', CLAUDE_CODE_MCP_LOG_LEVEL: 'debug' } });
  try {
    for (const harness of [cold, warm]) harness.model.on(PROMPT).always('Done.');
    await firstSession(cold);
    const times = await interleaved(rounds, {
      cold: () => firstSession(cold),
      warm: async () => {
        await waitForSpare(warm);
        return firstSession(warm);
      },
    });
    const over = ratio(times.warm, times.cold);
    const claimed = count(warm, 'spare claimed');
    return {
      what: 'first session with a warm spare',
      target: 'at most 0.7 × without',
      measured: `${over.toFixed(2)} × (${round(median(times.warm))} ms, without ${round(median(times.cold))} ms)`,
      reached: over <= 0.7 && claimed === rounds,
      numbers: {
        ratio: round(over, 3),
        ms: round(median(times.warm), 1),
        coldMs: round(median(times.cold), 1),
        claimed,
      },
    };
  } finally {
    await cold.close();
    await warm.close();
  }
}

async function firstSession(harness: Harness): Promise<number> {
  let sessionId = '';
  const ms = await timed(async () => {
    sessionId = await start(harness, PROMPT);
  });
  await harness.ok('claude_code_session', { action: 'cancel', sessionId });
  return ms;
}

async function waitForSpare(harness: Harness): Promise<void> {
  await eventually(() => count(harness, 'spare is warm') > count(harness, 'spare claimed'), {
    what: 'the spare is warm',
    within: 60_000,
  });
}

function count(harness: Harness, words: string): number {
  return harness.server.stderr().split(words).length - 1;
}
