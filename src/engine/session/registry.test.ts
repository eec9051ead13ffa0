import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deferred, type Deferred } from '../clock.ts';
import { Registry } from './registry.ts';
import type { Session } from './session.ts';

/** A session as the registry sees it; its process closes when the test says so. */
class FakeSession {
  readonly id: string;
  readonly conversation: { readonly times: { readonly restedMs: number } };
  phase: 'none' | 'starting' | 'idle' | 'working' | 'closing' = 'none';
  #gone: Deferred<void> | undefined;

  constructor(id: string, restedMs = 0) {
    this.id = id;
    this.conversation = { times: { restedMs } };
  }

  get holdsPlace(): boolean {
    return this.phase !== 'none';
  }

  get process(): Pick<Session['process'], 'closing' | 'closed'> {
    const closing = this.phase === 'closing';
    return { closing, closed: async () => (closing ? this.#gone?.promise : undefined) };
  }

  get parkable(): boolean {
    return this.phase === 'idle';
  }

  async park(): Promise<void> {
    if (this.parkable) await this.dispose();
  }

  release(): Promise<void> {
    return this.dispose();
  }

  async dispose(): Promise<void> {
    if (this.phase === 'none') return;
    if (this.phase !== 'closing') {
      this.phase = 'closing';
      this.#gone = deferred<void>();
    }
    await this.#gone?.promise;
  }

  end(): void {
    this.phase = 'none';
    this.#gone?.resolve();
  }
}

interface Launch {
  readonly session: FakeSession;
  readonly started: () => boolean;
  readonly outcome: Promise<string>;
  succeed(): void;
  fail(): void;
}

class Bench {
  readonly sessions: FakeSession[] = [];
  readonly launches: Launch[] = [];
  readonly registry: Registry;

  constructor(maxProcesses: number) {
    this.registry = new Registry(maxProcesses);
  }

  addSession(process: FakeSession['phase'], restedMs = 0): FakeSession {
    const session = new FakeSession(`s${this.sessions.length}`, restedMs);
    session.phase = process;
    this.sessions.push(session);
    this.registry.add(session as unknown as Session);
    return session;
  }

  launch(known?: FakeSession): Launch {
    const session = known ?? new FakeSession(`s${this.sessions.length}`);
    if (!known) this.sessions.push(session);
    const done = deferred<void>();
    done.promise.catch(() => undefined);
    let started = false;
    const outcome = this.registry
      .withPlace(async (place) => {
        place.session = session as unknown as Session;
        this.registry.add(place.session);
        started = true;
        session.phase = 'starting';
        await done.promise;
        session.phase = 'working';
        return 'ran';
      })
      .catch((error: unknown) => {
        if (session.phase === 'starting') session.phase = 'none';
        return String((error as { code?: string }).code ?? error);
      });
    const launch = {
      session,
      started: () => started,
      outcome,
      succeed: () => done.resolve(),
      fail: () => done.reject(new Error('failed')),
    };
    this.launches.push(launch);
    return launch;
  }

  get processes(): number {
    return this.sessions.filter(({ phase }) => phase !== 'none').length;
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

test('only as many concurrent starts run as there are slots', async () => {
  const bench = new Bench(1);
  const launches = [bench.launch(), bench.launch(), bench.launch()];
  launches[0]?.succeed();
  expect(await Promise.all(launches.map(({ outcome }) => outcome))).toEqual([
    'ran',
    'TOO_MANY_SESSIONS',
    'TOO_MANY_SESSIONS',
  ]);
});

test('an idle process gives its slot to one start, which waits for it to close', async () => {
  const bench = new Bench(1);
  const idle = bench.addSession('idle');
  const [first, second] = [bench.launch(), bench.launch()];
  expect(await second.outcome).toBe('TOO_MANY_SESSIONS');
  await settle();
  expect([idle.phase, first.started()]).toEqual(['closing', false]);
  idle.end();
  first.succeed();
  expect(await first.outcome).toBe('ran');
});

test('two starts get two slots, longest idle first; a third gets none', async () => {
  const bench = new Bench(3);
  bench.addSession('working');
  const short = bench.addSession('idle', 1);
  const long = bench.addSession('idle', 2);
  const first = bench.launch();
  expect([long.phase, short.phase]).toEqual(['closing', 'idle']);
  const second = bench.launch();
  expect(await bench.launch().outcome).toBe('TOO_MANY_SESSIONS');
  short.end();
  await settle();
  expect([first.started(), second.started()]).toEqual([false, true]);
  long.end();
  await settle();
  expect(first.started()).toBe(true);
});

test('a closing process, even of a forgotten session, frees its slot before an idle one is parked', async () => {
  const bench = new Bench(2);
  const idle = bench.addSession('idle');
  const forgotten = bench.addSession('working');
  void bench.registry.forget(forgotten as unknown as Session);
  const start = bench.launch();
  expect(idle.phase).toBe('idle');
  await settle();
  expect(start.started()).toBe(false);
  forgotten.end();
  await settle();
  expect(start.started()).toBe(true);
});

test('a session parked to make room can be restarted in its own slot', async () => {
  const bench = new Bench(1);
  const idle = bench.addSession('idle');
  const start = bench.launch();
  expect(await bench.launch(idle).outcome).toBe('TOO_MANY_SESSIONS');
  idle.end();
  start.fail();
  await start.outcome;
  const again = bench.launch(idle);
  await settle();
  expect(again.started()).toBe(true);
});

const action = fc.record({
  what: fc.constantFrom('launch', 'relaunch', 'succeed', 'fail', 'rest', 'park', 'forget', 'end', 'crash'),
  which: fc.nat(),
});

test('under any concurrency there are never more processes than slots, and every slot is released', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(action, { maxLength: 40 }), async (max, actions) => {
      const bench = new Bench(max);
      const pick = <T>(from: readonly T[], which: number): T | undefined => from[which % Math.max(from.length, 1)];
      for (const { what, which } of actions) {
        const session = pick(bench.sessions, which);
        if (what === 'launch') bench.launch();
        if (what === 'relaunch' && session?.phase === 'none') bench.launch(session);
        if (what === 'succeed') pick(bench.launches, which)?.succeed();
        if (what === 'fail') pick(bench.launches, which)?.fail();
        if (what === 'rest' && session?.phase === 'working') session.phase = 'idle';
        if (what === 'park') void session?.park();
        if (what === 'forget' && session && session.phase !== 'starting')
          void bench.registry.forget(session as unknown as Session);
        if (what === 'end' && session?.phase === 'closing') session.end();
        if (what === 'crash' && session?.phase === 'working') session.phase = 'none';
        if (which % 2 === 0) await settle();
        expect(bench.processes).toBeLessThanOrEqual(max);
      }
      for (const launch of bench.launches) launch.succeed();
      for (let round = 0; round < 3; round++) {
        await settle();
        for (const session of bench.sessions) {
          void session.dispose();
          session.end();
        }
      }
      await Promise.all(bench.launches.map(({ outcome }) => outcome));
      for (const session of bench.sessions) session.phase = 'none';
      const last = Array.from({ length: max }, () => bench.launch());
      await settle();
      expect(last.every(({ started }) => started())).toBe(true);
    }),
    { numRuns: 300 },
  );
});
