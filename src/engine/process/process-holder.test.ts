import { expect, test } from 'vitest';
import { heardAs, IDLE, resultEvent, STARTED, type Said } from '../../../test/harness/agent-messages.ts';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import type { AgentExit, AgentListener, AgentProcess } from '../../driver/agent-process.ts';
import { DomainError } from '../../errors/errors.ts';
import { deferred } from '../clock.ts';
import { ProcessHolder } from './process-holder.ts';

const FIRST = { id: 'm1', text: 'hello' };
const EXIT: AgentExit = { code: 1, signal: null, stderr: 'no room', error: undefined };
/** A process scripted by the test. */
class FakeProcess {
  readonly sent: string[] = [];
  readonly stopped = deferred<void>();
  readonly gone = Promise.resolve();
  readonly listener: AgentListener;
  readonly pid: number;
  alive = true;
  stops = 0;

  constructor(listener: AgentListener, pid: number) {
    this.listener = listener;
    this.pid = pid;
  }

  send(text: string): void {
    this.sent.push(text);
  }

  stop(): Promise<void> {
    this.stops++;
    return this.stopped.promise;
  }

  say(...said: Said[]): void {
    for (const each of said) this.listener.onMessage(heardAs(each));
  }
}

function setUp(beforeMessage?: () => Promise<void>) {
  const clock = new ManualClock();
  const heard: Said['kind'][] = [];
  const exits: AgentExit[] = [];
  const processes: FakeProcess[] = [];
  const holder = new ProcessHolder(clock, {
    onMessage: ({ event, signals }) =>
      heard.push(...[...(event ? [event.body] : []), ...signals].map(({ kind }) => kind)),
    onRequest: async () => ({ behavior: 'allow' }),
    onExit: (exit) => exits.push(exit),
    ...(beforeMessage && { beforeMessage }),
  });
  const start = (first: typeof FIRST | 'none' = FIRST, launching: Promise<void> = Promise.resolve()): Promise<void> =>
    holder.start({
      timeoutMs: 1_000,
      launch: async (listener) => {
        await launching;
        const process = new FakeProcess(listener, processes.length + 1);
        processes.push(process);
        return { process: process as unknown as AgentProcess, first: first === 'none' ? undefined : first };
      },
    });
  const launched = async (): Promise<FakeProcess> => {
    await expect.poll(() => processes.length).toBeGreaterThan(0);
    return processes.at(-1)!;
  };
  return { clock, heard, exits, processes, holder, start, launched };
}

test('the first message waits for what has to come before it, while the process boots', async () => {
  const before = deferred<void>();
  const { start, launched } = setUp(() => before.promise);
  const starting = start();
  const process = await launched();
  process.say({ kind: 'background_tasks', count: 0 });
  expect(process.sent).toEqual([]);
  before.resolve();
  await expect.poll(() => process.sent).toEqual(['hello']);
  process.say(STARTED);
  await starting;
});

test('a start ends with Claude Code’s init report, which follows the first message', async () => {
  const { holder, start, launched } = setUp();
  const starting = start();
  const process = await launched();
  expect(holder.starting).toBe(true);
  await expect.poll(() => process.sent).toEqual(['hello']);
  process.say(STARTED);
  await starting;
  expect({ starting: holder.starting, pid: holder.pid }).toEqual({ starting: false, pid: 1 });
});

test('without a message there is no report, and the start ends with the launch', async () => {
  const { holder, start } = setUp();
  await start('none');
  expect({ starting: holder.starting, pid: holder.pid }).toEqual({ starting: false, pid: 1 });
});

test('a second start during the first is refused before anything is launched', async () => {
  const { start, launched, processes } = setUp();
  const first = start();
  await expect(start()).rejects.toMatchObject({ code: 'INTERNAL' });
  (await launched()).say(STARTED);
  await first;
  expect(processes).toHaveLength(1);
});

test('settled() resolves after a pending start, and after a pending close', async () => {
  const { holder, start, launched } = setUp();
  const starting = start();
  const settled = holder.settled().then(() => holder.starting);
  (await launched()).say(STARTED);
  await starting;
  expect(await settled).toBe(false);

  const [process] = [await launched()];
  holder.close();
  const closed = holder.settled().then(() => holder.pid);
  expect(holder.pid).toBe(1);
  process.stopped.resolve();
  expect(await closed).toBe(undefined);
});

test('a process that does not report in time is stopped, and its later messages are ignored', async () => {
  const { clock, heard, holder, start, launched } = setUp();
  const starting = start();
  const process = await launched();
  await expect.poll(() => clock.alarms).toBe(1);
  clock.advance(1_000);
  await expect(starting).rejects.toMatchObject({ code: 'TIMEOUT' });
  expect(process.stops).toBe(1);
  process.say(STARTED);
  expect(heard).toEqual([]);
  process.stopped.resolve();
  await holder.settled();
  expect(holder.live).toBe(undefined);
});

test.each([
  ['its own error', [resultEvent({ isError: true, text: 'No conversation found' }), IDLE], 'No conversation found'],
  ['its exit code', [], 'exit code 1: no room'],
])('a process that exits before its report fails the start with %s', async (_what, said, words) => {
  const { exits, holder, start, launched } = setUp();
  const starting = start();
  const process = await launched();
  await expect.poll(() => process.sent).toHaveLength(1);
  process.say(...said);
  process.listener.onExit(EXIT);
  await expect(starting).rejects.toMatchObject({ message: expect.stringContaining(words) as string });
  expect({ exits, live: holder.live }).toEqual({ exits: [], live: undefined });
});

test('an exit in the same tick as the report is reported, not lost', async () => {
  const { exits, holder, start, launched } = setUp();
  const starting = start();
  const process = await launched();
  await expect.poll(() => process.sent).toHaveLength(1);
  process.say(STARTED);
  process.listener.onExit(EXIT);
  await starting;
  expect({ exits, live: holder.live }).toEqual({ exits: [EXIT], live: undefined });
});

test('an aborted start stops the starting process, and settles once that has exited', async () => {
  const { holder, start, processes } = setUp();
  const launching = deferred<void>();
  const refused = expect(start(FIRST, launching.promise)).rejects.toMatchObject({ code: 'CANCELLED' });
  holder.abortStart(new DomainError('CANCELLED', 'not wanted'));
  const closed = holder.closed().then(() => processes.map(({ stops }) => stops));
  launching.resolve();
  await expect.poll(() => processes[0]?.stops).toBe(1);
  processes[0]?.stopped.resolve();
  await refused;
  expect(await closed).toEqual([1]);
  expect(holder.live).toBe(undefined);
});

test('an aborted adoption stops the process that it has got hold of', async () => {
  const { holder } = setUp();
  const attached = deferred<AgentProcess>();
  const refused = expect(holder.adopt(() => attached.promise)).rejects.toMatchObject({ code: 'CANCELLED' });
  holder.abortStart(new DomainError('CANCELLED', 'not wanted'));
  const process = new FakeProcess({} as AgentListener, 1);
  process.stopped.resolve();
  attached.resolve(process as unknown as AgentProcess);
  await refused;
  await holder.closed();
  expect(process.stops).toBe(1);
  expect(holder.live).toBe(undefined);
});

test('messages and requests from a closing process are ignored', async () => {
  const { heard, exits, holder, start, launched } = setUp();
  const starting = start();
  const process = await launched();
  process.say(STARTED);
  await starting;
  heard.length = 0;
  holder.close();
  process.say(resultEvent());
  process.listener.onExit(EXIT);
  expect({ heard, exits }).toEqual({ heard: [], exits: [] });
  expect(await process.listener.onRequest({} as never)).toMatchObject({ behavior: 'deny', interrupt: true });
});

test('a process without idle reports is idle after each result; otherwise only its reports count', async () => {
  const { heard, start, launched } = setUp();
  const starting = start();
  const process = await launched();
  process.say(STARTED);
  await starting;
  process.say(resultEvent());
  expect(heard).toEqual(['init', 'result', 'state']);
  process.say({ kind: 'state', state: 'running' });
  process.say(resultEvent());
  expect(heard).toEqual(['init', 'result', 'state', 'state', 'result']);
});
