/** Many concurrent sessions under interrupts, crashes and the like; each is checked against its invariants. */

import { setTimeout as sleep } from 'node:timers/promises';
import { text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import { randomFrom, type Random } from './random.ts';
import { SoakedSession } from './soaked-session.ts';

export interface SoakPlan {
  readonly sessions: number;
  readonly turns: number;
  readonly seed: number;
  readonly tell?: (line: string) => void;
}

export interface SoakReport {
  readonly counts: Readonly<Record<string, number>>;
  readonly heapBefore: number;
  readonly heapAfter: number;
}

/** Collects garbage and prints the heap size on SIGUSR2, so that the test can measure memory. */
const HEAP_PROBE = `import v8 from 'node:v8'; import vm from 'node:vm';
v8.setFlagsFromString('--expose-gc');
process.on('SIGUSR2', () => { vm.runInNewContext('gc')(); process.stderr.write('heap=' + process.memoryUsage().heapUsed + ';'); });`;

/** Sessions are parked and forgotten quickly, and compete for few slots. */
export function soakHarness(sessions: number, forgottenAfterMs = 15_000): HarnessOptions {
  return {
    record: 'none',
    env: {
      CLAUDE_CODE_MCP_PARK_AFTER_MS: '700',
      CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '100',
      CLAUDE_CODE_MCP_SESSION_TTL_MS: String(forgottenAfterMs),
      CLAUDE_CODE_MCP_MAX_SESSIONS: String(sessions + 1),
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(HEAP_PROBE)}`,
    },
  };
}

export async function soak(
  h: Harness,
  { sessions, turns, seed, tell = () => undefined }: SoakPlan,
): Promise<SoakReport> {
  h.model.on(/^soak /).always(modelAnswer);
  const counts: Record<string, number> = {};
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);

  await oneSession(h, 'warm', Math.min(turns, 2), randomFrom(seed), count);
  const heapBefore = await heapSize(h);
  let done = 0;
  await Promise.all(
    Array.from({ length: sessions }, async (_, index) => {
      await oneSession(h, String(index), turns, randomFrom(seed * 1_000 + index), (what) => {
        count(what);
        if (++done % 100 === 0) tell(`${done} steps, ${JSON.stringify(counts)}`);
      });
    }),
  );
  await eventually(async () => (await h.processes()).length === 1, {
    what: 'only the server process is left',
    within: 10_000,
  });
  await eventually(async () => (await h.ok('claude_code_session', { action: 'list' })).sessions.length === 0, {
    what: 'every session is forgotten',
    within: 120_000,
    every: 250,
  });
  return { counts, heapBefore, heapAfter: await heapSize(h) };
}

/** Runs one session; if it is cancelled partway, another takes its place. */
async function oneSession(
  h: Harness,
  name: string,
  turns: number,
  random: Random,
  count: (what: string) => void,
): Promise<void> {
  let session = await SoakedSession.start(h, name);
  for (let turn = 0; turn < turns; turn++) {
    const what = random.pick(STEPS);
    await session[what](random);
    count(what);
    if (session.cancelled) session = await SoakedSession.start(h, `${name}.${turn}`);
    // Sometimes long enough to be parked.
    if (random.chance(0.1)) await sleep(random.below(1_200));
  }
  await session.end();
}

const STEPS = weighted({
  answered: 8,
  allowed: 2,
  denied: 2,
  interrupted: 2,
  queued: 2,
  forked: 1,
  crashed: 1,
  cancelledAtWork: 1,
});

function weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name[] {
  return (Object.keys(weights) as Name[]).flatMap((name) => Array.from({ length: weights[name] }, () => name));
}

/** `soak <name> <kind>`: the prompt says what the model does. */
function modelAnswer({ userTexts, toolResults }: ModelRequest): ReplyLike {
  const prompt = userTexts.findLast((written) => written.startsWith('soak ')) ?? '';
  if (prompt.endsWith(' asks') && toolResults.length === 0) {
    return tool('Bash', { command: 'touch soaked.txt', description: 'touch' });
  }
  return text(`answer to ${prompt}`).delay(prompt.endsWith(' slow') ? 400 : 0);
}

async function heapSize(h: Harness): Promise<number> {
  const printed = (): string[] => h.server.stderr().match(/heap=\d+;/g) ?? [];
  const before = printed().length;
  h.server.kill('SIGUSR2');
  await eventually(() => printed().length > before, { what: 'the server prints its heap size' });
  return Number(printed().at(-1)?.slice('heap='.length, -1));
}
