/** Several hubs with busy, waiting and idle sessions, while hubs, connections and Postgres fail at random. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import { Fleet, type FleetHub } from '../fleet/fleet.ts';
import { startPostgres, type Postgres } from '../harness/postgres.ts';
import { FleetFront, Violation } from './fleet-front.ts';
import { answerTo, FleetSession } from './fleet-session.ts';
import { randomFrom, type Random } from './random.ts';

export interface FleetSoakPlan {
  readonly sessions: number;
  readonly steps: number;
  readonly seed: number;
  readonly hubs?: number;
  readonly tell?: (line: string) => void;
}

export interface FleetSoakReport {
  readonly counts: Readonly<Record<string, number>>;
  readonly longestCallMs: number;
}

const LOG_LINES = 100;

/** Up to ten minutes apart. */
const CLOCKS = [0, 300_000, -300_000];

interface Target {
  readonly front: FleetFront;
  readonly fleet: Fleet;
  readonly postgres: Postgres;
  readonly hub: FleetHub;
  readonly random: Random;
}

type Fault = (target: Target) => Promise<void>;

/** Longer than a lease, so that other hubs take over. */
const long = (random: Random): number => 16_000 + random.below(4_000);
/** From half a second to almost long enough to lose a lease. */
const short = (random: Random): number => 500 + random.below(5_000);

const killed =
  (ms: (random: Random) => number): Fault =>
  async ({ front, hub, random }) => {
    front.take(hub, 'out');
    await hub.stop('SIGKILL');
    await sleep(ms(random));
    await hub.start();
    front.take(hub, 'in');
  };

const hanging =
  (ms: (random: Random) => number): Fault =>
  async ({ front, hub, random }) => {
    front.take(hub, 'out');
    hub.process.kill('SIGSTOP');
    await sleep(ms(random));
    hub.process.kill('SIGCONT');
    front.take(hub, 'in');
  };

/** The hub stays in service: it must answer calls, if only with UNAVAILABLE. */
const withoutPostgres =
  (line: 'refused' | 'silent', ms: (random: Random) => number): Fault =>
  async ({ hub, random }) => {
    hub.proxy.set(line);
    await sleep(ms(random));
    hub.proxy.set('open');
  };

/** Each fault undoes itself before it returns. */
const FAULTS: Readonly<Record<string, Fault>> = {
  killed: killed(long),
  'killed and back': killed(short),
  hanging: hanging(long),
  'hanging for a moment': hanging(short),
  cut: withoutPostgres('refused', long),
  'cut for a moment': withoutPostgres('refused', short),
  silent: withoutPostgres('silent', long),
  'silent for a moment': withoutPostgres('silent', short),
  slow: async ({ hub, random }) => {
    hub.proxy.delay(25 + random.below(125));
    await sleep(long(random));
    hub.proxy.delay(0);
  },
  'Postgres restarted': async ({ postgres, random }) => {
    await postgres.stop();
    await sleep(random.below(4_000));
    await postgres.start();
  },
  'rolling restart': async ({ front, fleet }) => {
    for (const hub of fleet.hubs) {
      front.take(hub, 'out');
      await hub.stop();
      await hub.start();
      front.take(hub, 'in');
    }
  },
};

/** All kinds in random order, over and over. */
function* faultNames(random: Random): Generator<string, never> {
  for (;;) {
    const left = Object.keys(FAULTS);
    while (left.length > 0) yield left.splice(random.below(left.length), 1)[0]!;
  }
}

export async function fleetSoak(plan: FleetSoakPlan): Promise<FleetSoakReport> {
  const { sessions: sessionCount, steps, seed, hubs = 3, tell = () => undefined } = plan;
  // Calls run concurrently, so faults have their own random source: the same seed gives the same faults.
  const [random, callRandom] = [randomFrom(seed), randomFrom(seed + 1)];
  const postgres = await startPostgres(['-c', 'fsync=off']);
  const unsharedRoot = await mkdtemp(path.join(tmpdir(), 'ccm-soak-'));
  let fleet: Fleet | undefined;
  try {
    fleet = await Fleet.open({
      postgresUrl: postgres.url,
      hubs,
      clocks: CLOCKS,
      places: Array.from({ length: hubs }, () => sessionCount * 2),
    });
    const front = new FleetFront(fleet, callRandom);
    fleet.model.on(/^fleet /).always(modelAnswer);
    const sessions: FleetSession[] = [];
    const watched = fleet.watchClaudes();
    try {
      for (let index = 0; index < sessionCount; index++) {
        // One in five cannot move from the machine it was started on.
        const cwd = index % 5 === 4 ? path.join(unsharedRoot, String(index)) : await fleet.directory(String(index));
        await mkdir(cwd, { recursive: true });
        sessions.push(await FleetSession.start(front, String(index), cwd));
      }
      const check = async (): Promise<void> => {
        for (const session of sessions) {
          await session.check();
          session.checkModelRequests(fleet!.model.requests);
        }
        const doubled = [...watched.most].filter(([, claudes]) => claudes.length > 1);
        if (doubled.length > 0) throw new Violation(`Sessions with two processes: ${JSON.stringify(doubled)}`);
      };
      const names = faultNames(random);
      for (let step = 1; step <= steps; step++) {
        const name = names.next().value;
        const hub = random.pick(fleet.hubs);
        const begun = performance.now();
        const delayMs = random.below(2_500);
        const fault = async (): Promise<void> => {
          await sleep(delayMs);
          await FAULTS[name]!({ front, fleet: fleet!, postgres, hub, random });
        };
        await waitForAll([fault(), ...sessions.map((session) => session.act())]);
        await check();
        front.count(name);
        const waiting = sessions.filter(({ isWaiting }) => isWaiting).length;
        const seconds = ((performance.now() - begun) / 1000).toFixed(0);
        tell(`step ${step}: ${name} (${hub.name}), ${seconds} s, ${waiting} waiting, ${JSON.stringify(front.counts)}`);
      }
      await waitForAll(sessions.map((session) => session.answer()));
      await check();
      if (watched.most.size < sessionCount) throw new Violation('Not every session was seen running.');
    } catch (error) {
      for (const hub of fleet.hubs) tell(`${hub.name}:\n${hub.stderr.split('\n').slice(-LOG_LINES).join('\n')}`);
      throw error;
    } finally {
      watched.stop();
    }
    return { counts: front.counts, longestCallMs: front.longestCallMs };
  } finally {
    // Throws if any process is left running.
    await fleet?.close();
    await postgres.remove();
    await rm(unsharedRoot, { recursive: true, force: true });
  }
}

/** Waits for everything, including until the fault has undone itself, before it reports a failure. */
async function waitForAll(work: Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).filter((one) => one.status === 'rejected');
  if (failed.length > 0)
    throw new AggregateError(
      failed.map(({ reason }) => reason as unknown),
      failed.map(({ reason }) => String(reason)).join('\n'),
    );
}

/** `fleet <name> <number> <kind>`: the prompt says what the model does; a note from the hub may precede it. */
function modelAnswer({ userTexts, lastUserText, toolResults }: ModelRequest): ReplyLike {
  const prompts = userTexts.flatMap((written) => written.match(/^fleet \S+ \d+ \w+$/gm) ?? []);
  const prompt = prompts.at(-1) ?? '';
  const isAsked = prompt.endsWith(' asks') && lastUserText.endsWith(prompt);
  // The call was allowed while no process was running.
  const mustBeRepeated = lastUserText.includes('Make exactly the same call again');
  if ((isAsked || mustBeRepeated) && toolResults.length === 0)
    return tool('Bash', { command: 'touch soaked.txt', description: 'touch' });
  return text(answerTo(prompt)).delay(prompt.endsWith(' slow') ? 4_000 : 0);
}
