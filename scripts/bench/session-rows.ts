import { setTimeout as sleep } from 'node:timers/promises';
import type { Harness } from '../../test/harness/open-harness.ts';
import { BareSession, resumedTurn, type Place } from './bare-sdk.ts';
import { interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const PROMPT = 'benchmark turn';
const WAIT_MS = 120_000;
/** Turns per session after the first: they are short, so a single one would be noise. */
const TURNS_PER_SESSION = 5;

/** The processes of one side take a moment to exit, and must not slow down the other side's start. */
const SETTLE_MS = 1_000;

interface Side {
  readonly first: number[];
  readonly second: number[];
  readonly resumed: number[];
}

/** A new session and its next turns: by the server, by the bare SDK, and by a new process that resumes. */
export async function sessionRows(rounds: number, harness: Harness, place: Place): Promise<Row[]> {
  harness.model.on(PROMPT).always('Done.');
  const bare: Side = { first: [], second: [], resumed: [] };
  const ours: Side = { first: [], second: [], resumed: [] };
  // The very first process reads its program from disk, which must not count for either side.
  await bareSide(place, { first: [], second: [], resumed: [] });
  await ourSide(harness, { first: [], second: [], resumed: [] });
  await interleaved(rounds, {
    bare: async () => timed(() => bareSide(place, bare)),
    ours: async () => timed(() => ourSide(harness, ours)),
  });
  const first = ratio(ours.first, bare.first);
  const second = ratio(ours.second, bare.second);
  const faster = median(bare.resumed) / median(ours.second);
  const ms = (values: readonly number[]): string => `${round(median(values))} ms`;
  return [
    {
      what: 'new session, one call to its result',
      target: 'at most 1.1 × the bare SDK',
      measured: `${first.toFixed(2)} × (${ms(ours.first)}, bare ${ms(bare.first)})`,
      reached: first <= 1.1,
      numbers: { ratio: round(first, 3), ms: round(median(ours.first), 1), bareMs: round(median(bare.first), 1) },
    },
    {
      what: 'second turn, call to result',
      target: 'at most 1.15 × a bare streaming turn',
      measured: `${second.toFixed(2)} × (${ms(ours.second)}, bare ${ms(bare.second)})`,
      reached: second <= 1.15,
      numbers: { ratio: round(second, 3), ms: round(median(ours.second), 1), bareMs: round(median(bare.second), 1) },
    },
    {
      what: 'second turn, against resuming in a new process',
      target: 'at least 8 × faster',
      measured: `${faster.toFixed(1)} × (${ms(bare.resumed)} resumed)`,
      reached: faster >= 8,
      numbers: { ratio: round(faster, 2), resumedMs: round(median(bare.resumed), 1) },
    },
  ];
}

async function bareSide(place: Place, { first, second, resumed }: Side): Promise<void> {
  const session = new BareSession(place);
  first.push(await timed(() => session.turn(PROMPT)));
  for (let turn = 0; turn < TURNS_PER_SESSION; turn++) second.push(await timed(() => session.turn(PROMPT)));
  session.close();
  resumed.push(await timed(() => resumedTurn(session.id, PROMPT, place)));
  await sleep(SETTLE_MS);
}

async function ourSide(harness: Harness, { first, second }: Side): Promise<void> {
  let sessionId = '';
  first.push(
    await timed(async () => {
      sessionId = await start(harness);
    }),
  );
  for (let turn = 0; turn < TURNS_PER_SESSION; turn++) {
    second.push(await timed(() => reply(harness, sessionId)));
  }
  await cancel(harness, sessionId);
  await sleep(SETTLE_MS);
}

async function cancel(harness: Harness, sessionId: string): Promise<void> {
  await harness.ok('claude_code_session', { action: 'cancel', sessionId }, { timeout: WAIT_MS });
}

/** Resolves with the session's id once it has its result. */
export async function start(harness: Harness, prompt = PROMPT): Promise<string> {
  const args = { prompt, waitMs: WAIT_MS, sessionInitTimeoutMs: WAIT_MS };
  const answer = (await harness.ok('claude_code', args, { timeout: WAIT_MS })) as { sessionId: string; status: string };
  if (answer.status !== 'idle') throw new Error(`A session ended as ${answer.status}`);
  return answer.sessionId;
}

export async function reply(harness: Harness, sessionId: string): Promise<void> {
  const args = { sessionId, prompt: PROMPT, waitMs: WAIT_MS };
  const { status } = (await harness.ok('claude_code_reply', args, { timeout: WAIT_MS })) as { status: string };
  if (status !== 'idle') throw new Error(`A turn ended as ${status}`);
}

/** Many concurrent sessions, each with its turns one after another. */
export async function parallelRow(
  rounds: number,
  harness: Harness,
  place: Place,
  { sessions, turns }: { sessions: number; turns: number },
): Promise<Row> {
  harness.model.on(PROMPT).always('Done.');
  // Ending is not measured: unlike the server, the SDK does not wait for its process to exit.
  const each = async (run: () => Promise<() => unknown>): Promise<number> => {
    let ends: (() => unknown)[] = [];
    const ms = await timed(async () => (ends = await Promise.all(Array.from({ length: sessions }, run))));
    await Promise.all(ends.map((end) => end()));
    await sleep(SETTLE_MS);
    return ms;
  };
  const times = await interleaved(rounds, {
    bare: () =>
      each(async () => {
        const session = new BareSession(place);
        for (let turn = 0; turn < turns; turn++) await session.turn(PROMPT);
        return () => session.close();
      }),
    ours: () =>
      each(async () => {
        const sessionId = await start(harness);
        for (let turn = 1; turn < turns; turn++) await reply(harness, sessionId);
        return () => cancel(harness, sessionId);
      }),
  });
  const over = ratio(times.ours, times.bare);
  const seconds = (values: readonly number[]): number => round(median(values) / 1000, 2);
  return {
    what: `${sessions} sessions at once, ${turns} turns each`,
    target: 'at most 1.15 × the bare SDK',
    measured: `${over.toFixed(2)} × (${seconds(times.ours)} s, bare ${seconds(times.bare)} s)`,
    reached: over <= 1.15,
    numbers: { ratio: round(over, 3), s: seconds(times.ours), bareS: seconds(times.bare) },
  };
}
