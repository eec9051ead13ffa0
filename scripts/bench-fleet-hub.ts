/** One hub of the fleet bench: the real engine, journal and fleet on Postgres, with agents that emit what Claude Code emits. */

import { EngineClient } from '../src/engine/client.ts';
import { LOCAL } from '../src/engine/rules/access.ts';
import { joinFleet } from '../src/fleet/other-hubs.ts';
import { Journal } from '../src/hub/journal.ts';
import { openPostgresStore } from '../src/store/postgres/open.ts';
import { syntheticEngine } from './bench/synthetic-agent.ts';
import type { HubJob, HubJobDone } from './bench/fleet-rows.ts';

/** `--check` only loads the modules: otherwise the benchmark starts this script. */
if (process.argv.includes('--check')) process.exit(0);

const [url = '', name = ''] = process.argv.slice(2);
const store = await openPostgresStore({ url });
const lease = await store.acquireLease(name, 600_000, { host: name, places: { free: 1000, max: 1000 } });
const by = { hub: lease.hub, fence: lease.fence };
const onFenced = (): void => process.exit(1);
const journal = new Journal({ store, by, now: Date.now, log: (_level, line) => console.error(line), onFenced });
const fleet = joinFleet({ store, by, journal });
const engine = syntheticEngine({ steps: 5, partials: 0 }, ['--max-sessions', '1000'], {
  archive: journal,
  others: fleet.others,
});
journal.follow(engine);
const runner = fleet.runCommands(engine, (_level, line) => console.error(line));
const client = new EngineClient(engine, { principal: LOCAL, showsForms: false });
const DISK = { kind: 'token', token: undefined, options: {} } as const;

async function rested(sessionId: string): Promise<void> {
  await client.read(sessionId);
  await new Promise<void>((resolve) => {
    const resolveAtRest = (): void => {
      if (client.standing(sessionId, false) === 'works') return;
      unsubscribe();
      resolve();
    };
    const unsubscribe = client.watch(sessionId, resolveAtRest);
    resolveAtRest();
  });
  await client.stored();
}

async function start(): Promise<string> {
  const options = { cwd: process.cwd() };
  const { sessionId } = await client.execute<'start'>({ kind: 'start', prompt: 'go', options });
  await rested(sessionId);
  return sessionId;
}

async function reply(sessionId: string): Promise<void> {
  await client.execute<'reply'>({ kind: 'reply', sessionId, prompt: 'again', disk: DISK });
  await client.stored();
}

async function times(rounds: number, work: () => Promise<unknown>): Promise<number[]> {
  const each: number[] = [];
  for (let n = 0; n < rounds; n++) {
    const begin = performance.now();
    await work();
    each.push(performance.now() - begin);
  }
  return each;
}

async function run(job: HubJob): Promise<HubJobDone> {
  const cpu = process.cpuUsage();
  let ids: string[] = [];
  let ms: number[] = [];
  if (job.kind === 'start') ids = await Promise.all(Array.from({ length: job.count }, start));
  else if (job.kind === 'turns')
    await Promise.all(
      job.ids.map(async (id) => {
        await reply(id);
        await rested(id);
      }),
    );
  else if (job.kind === 'poll') {
    const { log } = await client.read(job.id);
    ms = await times(job.rounds, async () => (await client.read(job.id)).log.from(log.nextId - 5));
  } else {
    for (let n = 0; n < job.rounds; n++) {
      ms.push(...(await times(1, () => reply(job.id))));
      await rested(job.id);
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  return { ids, ms, cpuMs: (user + system) / 1000 };
}

process.on('message', (job: HubJob) => {
  run(job).then(
    (done) => process.send?.(done),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => {
  void runner
    .close()
    .then(() => engine.close())
    .then(() => journal.close(1_000))
    .then(() => store.close())
    .then(() => process.exit(0));
});
process.send?.({ ids: [], ms: [], cpuMs: 0 });
