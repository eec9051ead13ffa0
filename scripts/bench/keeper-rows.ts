import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { builtServer } from '../../test/harness/built-server.ts';
import { openHarness, type Harness } from '../../test/harness/open-harness.ts';
import { interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';
import { reply, start } from './session-rows.ts';

const TURNS = 24;
const PROCESSES = 20;
const ADOPTED = 10;
const MAX_MEGABYTES = 60;
const MAX_ADOPTION_MS = 1_000;

/** What it costs that Claude Code's processes outlive their hub. */
export async function keeperRows(rounds: number): Promise<Row[]> {
  const env = { CLAUDE_CODE_MCP_MAX_SESSIONS: '30' };
  const kept = await openHarness({ record: 'none', hub: { env }, tolerate: { stderr: true } });
  const without = await withoutKeeper();
  try {
    kept.model.on('benchmark turn').always('Done.');
    const turns = await turnRow(rounds, kept, without.harness);
    const ids = await Promise.all(Array.from({ length: ADOPTED }, () => start(kept)));
    const adoption = await adoptionRow(rounds, kept, ids);
    for (let index = ADOPTED; index < PROCESSES; index++) await start(kept);
    return [turns, await memoryRow(kept), adoption];
  } finally {
    await kept.close();
    await without.close();
  }
}

/** The same build, in which nothing can keep processes. */
async function withoutKeeper(): Promise<{ harness: Harness; close: () => Promise<void> }> {
  const root = path.dirname(path.dirname(builtServer()));
  const copy = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-bench-keeper-'));
  await cp(path.join(root, 'dist'), path.join(copy, 'dist'), { recursive: true });
  await cp(path.join(root, 'package.json'), path.join(copy, 'package.json'));
  await symlink(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  await rm(path.join(copy, 'dist', 'keeper.mjs'));
  const program = path.join(copy, 'dist', 'main.mjs');
  const harness = await openHarness({ record: 'none', hub: {}, program, tolerate: { stderr: true } });
  harness.model.on('benchmark turn').always('Done.');
  if (harness.keeperPid !== undefined) throw new Error('This hub has a keeper.');
  return {
    harness,
    close: async () => {
      await harness.close();
      await rm(copy, { recursive: true });
    },
  };
}

async function turnRow(rounds: number, kept: Harness, without: Harness): Promise<Row> {
  const medians = { kept: [] as number[], without: [] as number[] };
  for (let count = 0; count < rounds; count++) {
    const ids = { kept: await start(kept), without: await start(without) };
    const times = await interleaved(TURNS, {
      kept: () => timed(() => reply(kept, ids.kept)),
      without: () => timed(() => reply(without, ids.without)),
    });
    medians.kept.push(median(times.kept));
    medians.without.push(median(times.without));
    await kept.ok('claude_code_session', { action: 'cancel', sessionId: ids.kept });
    await without.ok('claude_code_session', { action: 'cancel', sessionId: ids.without });
  }
  const over = ratio(medians.kept, medians.without);
  return {
    what: 'keeper: second turn, compared with a hub that holds the process itself',
    target: 'at most 1.05 ×',
    measured: `${over.toFixed(2)} × (${String(round(median(medians.kept)))} ms, without ${String(round(median(medians.without)))} ms)`,
    reached: over <= 1.05,
    numbers: {
      ratio: round(over, 3),
      ms: round(median(medians.kept), 1),
      withoutMs: round(median(medians.without), 1),
    },
  };
}

async function memoryRow({ keeperPid }: Harness): Promise<Row> {
  const status = await readFile(`/proc/${String(keeperPid)}/status`, 'utf8');
  const megabytes = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  return {
    what: `keeper: resident memory with ${String(PROCESSES)} processes`,
    target: `at most ${String(MAX_MEGABYTES)} MB`,
    measured: `${String(round(megabytes))} MB`,
    reached: megabytes <= MAX_MEGABYTES,
    numbers: { megabytes: round(megabytes, 1) },
  };
}

/** From the start of the next hub's process to the answer of a session whose process it adopted. */
async function adoptionRow(rounds: number, h: Harness, ids: readonly string[]): Promise<Row> {
  const times: number[] = [];
  for (let count = 0; count < rounds; count++) {
    await h.stopHub('SIGKILL');
    times.push(
      await timed(async () => {
        await h.startHub();
        await reply(h, ids[count % ids.length] ?? '');
      }),
    );
  }
  return {
    what: `keeper: start of the next hub to the first answer of ${String(ids.length)} adopted sessions`,
    target: `at most ${String(MAX_ADOPTION_MS)} ms`,
    measured: `${String(round(median(times)))} ms`,
    reached: median(times) <= MAX_ADOPTION_MS,
    numbers: { ms: round(median(times)) },
  };
}
