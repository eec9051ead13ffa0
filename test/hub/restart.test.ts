import { beforeEach, describe, expect, test } from 'vitest';
import { deferred } from '../../src/engine/clock.ts';
import type { EventBody } from '../../src/schema/events.ts';
import type { Session } from '../../src/engine/session/session.ts';
import { checkView } from '../../src/views/check-view.ts';
import { viewOptions } from '../../src/mcp/tools/compact/view-options.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub, type TestHub, type TestHubOptions } from './test-hub.ts';

let store: Store;
let hub: TestHub;

beforeEach(async () => {
  store = await STORES.sqlite();
  hub = await startTestHub(store);
});

/** Kills the hub and starts its next incarnation. */
async function restart(options: TestHubOptions = {}): Promise<void> {
  await hub.journal.stored();
  hub.kill();
  hub = await startTestHub(store, options);
}

async function start(prompt = 'fix it'): Promise<Session> {
  return hub.engine.start({ prompt, options: {} });
}

async function recalled({ id }: Session): Promise<Session> {
  const session = await hub.engine.finder.recall(id);
  if (!session) throw new Error('the hub has forgotten the session');
  return session;
}

const PARKS_SOON = ['--park-after-ms', '60000', '--cleanup-interval-ms', '1000'];

const answered = (session: Session): Record<string, unknown> =>
  checkView({ ...session.read(), isLeftToPerson: () => false }, viewOptions('poll', { cursor: 1 }));
const requestIds = ({ requests }: Session): string[] => requests.map(({ id }) => id);

test('a session at rest gives the same answers after a restart as before, even to an old cursor', async () => {
  const session = await start();
  (await hub.agent()).answer('It is fixed.');
  const before = answered(session);
  await restart();
  const after = await recalled(session);
  expect(answered(after)).toEqual(before);
  expect(after.conversation.times.createdAt).toBe(Math.trunc(session.conversation.times.createdAt));
  expect(hub.agents).toEqual([]);
});

test('a session that was running when the hub was killed comes to rest with the reason, and a reply resumes it', async () => {
  const session = await start();
  await hub.agent();
  await restart();
  const after = await recalled(session);
  expect(after.state).toBe('error');
  expect(after.conversation.result?.text).toContain('the hub stopped while it worked; reply to continue');
  await hub.engine.reply({ sessionId: session.id, prompt: 'go on', disk: { kind: 'open', options: {} } });
  const agent = await hub.agent();
  expect(agent.launch.history).toMatchObject({ kind: 'resume' });
  expect(agent.prompts).toEqual(['go on']);
});

test('a hub that stops while Claude Code is being started leaves no process, and the turn says that it has to be tried again', async () => {
  const session = await start();
  (await hub.agent()).answer('done');
  const [launching, launched] = [deferred<void>(), deferred<void>()];
  await restart({
    beforeLaunch: () => {
      launching.resolve();
      return launched.promise;
    },
  });
  await recalled(session);
  const reply = hub.engine.reply({ sessionId: session.id, prompt: 'go on', disk: { kind: 'open', options: {} } });
  const refused = expect(reply).rejects.toThrow(/The hub stopped before Claude Code had started.* Try again/);
  await launching.promise;
  const closed = hub.engine.close();
  launched.resolve();
  await closed;
  await refused;
  expect(hub.agents.map(({ alive }) => alive)).toEqual([false]);
  await restart();
  const { state, conversation } = await recalled(session);
  expect(state).toBe('error');
  expect(conversation.result?.text).toMatch(/reply to continue|Try again/);
});

test.each([
  ['is in its transcript', 'counts as delivered', true],
  ['is not', 'has to be sent again', false],
])('a prompt that %s when hub and process are killed %s', async (_where, _how, isWritten) => {
  await restart({ reports: false });
  const never = hub.engine.start({ prompt: 'fix it', options: {} });
  never.catch(() => undefined);
  const { launch } = await hub.agent();
  await restart({ isWritten: () => isWritten });
  const { conversation } = (await hub.engine.finder.recall(launch.sessionId))!;
  expect(conversation.result?.text).toContain('reply to continue');
  expect(conversation.result?.text.includes('Not delivered, send again: "fix it"')).toBe(!isWritten);
});

describe('a prompt that Claude Code accepted but did not record before it was killed', () => {
  const reply = (sessionId: string, prompt: string): Promise<unknown> =>
    hub.engine.reply({ sessionId, prompt, disk: { kind: 'open', options: {} } });

  test('is sent again in a new conversation if there is nothing to resume', async () => {
    const session = await start('fix the parser');
    await hub.agent();
    await restart({ isWritten: () => false });
    await reply(session.id, 'go on');
    const agent = await hub.agent();
    expect(agent.launch).toMatchObject({ sessionId: session.id, history: { kind: 'new' } });
    expect(agent.prompts).toEqual(['fix the parser\n\ngo on']);
  });

  test('is sent again together with a decision made meanwhile', async () => {
    const session = await start('fix the parser');
    void (await hub.agent()).ask('r1', 'Bash', { command: 'make' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart({ isWritten: () => false });
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    const agent = await hub.agent();
    expect(agent.launch.history).toEqual({ kind: 'new' });
    expect(agent.prompts).toEqual([expect.stringMatching(/^fix the parser\n\nYour process .* was allowed/s)]);
  });

  test('is sent again in a later turn, without the prompts before it', async () => {
    const session = await start('fix the parser');
    const first = await hub.agent();
    first.answer('It is fixed.');
    await reply(session.id, 'now the printer');
    await eventually(() => first.prompts.length === 2, { what: 'the second prompt is accepted' });
    await restart({ isWritten: (messageId) => messageId === '' });
    await reply(session.id, 'go on');
    const agent = await hub.agent();
    expect(agent.launch.history).toEqual({ kind: 'resume' });
    expect(agent.prompts).toEqual(['now the printer\n\ngo on']);
  });
});

test('a session at rest past its TTL is unloaded, with a notice, and loaded again on demand', async () => {
  hub = await startTestHub(store, { argv: ['--session-ttl-ms', '60000', '--cleanup-interval-ms', '1000'] });
  const session = await start('a task to remember');
  (await hub.agent()).answer('done');
  await hub.journal.stored();
  const forgotten: string[] = [];
  hub.engine.stream.subscribe((notice) => {
    if (notice.kind === 'forgotten') forgotten.push(notice.sessionId);
  });
  hub.clock.advance(62_000);
  await eventually(() => hub.engine.find(session.id) === undefined, { what: 'the session is forgotten' });
  expect(forgotten).toEqual([session.id]);
  expect((await recalled(session)).record).toMatchObject({ state: 'idle', title: 'a task to remember' });
});

test('sessions that only the store remembers are listed', async () => {
  const session = await start('a task to remember');
  (await hub.agent()).answer('done');
  await restart();
  const [listed] = (await hub.engine.finder.list('local', 10)).sessions;
  expect(listed).toMatchObject({ id: session.id, state: 'idle', title: 'a task to remember' });
});

describe('an open request', () => {
  test('stays open after a restart, without a process, and keeps the session busy', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    const after = await recalled(session);
    expect(after.state).toBe('waiting');
    expect(requestIds(after)).toEqual(['r1']);
    expect(hub.agents).toEqual([]);
    const reply = hub.engine.reply({ sessionId: session.id, prompt: 'hello', disk: { kind: 'open', options: {} } });
    await expect(reply).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  });

  test('allowed after a restart: the new process is told, and the same call runs once without asking', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    const agent = await hub.agent();
    expect(agent.prompts[0]).toContain('Bash (npm test) was allowed. Make exactly the same call again');
    expect(agent.launch.history).toMatchObject({ kind: 'resume' });
    expect(await agent.ask('r2', 'Bash', { command: 'npm test' })).toEqual({ behavior: 'allow' });
    void agent.ask('r3', 'Bash', { command: 'npm test' });
    const after = await recalled(session);
    await eventually(() => requestIds(after).includes('r3'), { what: 'the second call has a request' });
    await hub.engine.stored();
    expect(hub.audit.map(({ kind, what, outcome }) => `${kind} ${what} ${outcome ?? ''}`.trim())).toEqual([
      'decision Bash allow',
      'decision Bash repeated',
      'request Bash',
    ]);
  });

  test('denied after a restart: the new process gets the message', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'rm -rf build' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    hub.engine.respond(session.id, 'r1', { decision: 'deny', message: 'Not the build directory.' });
    expect((await hub.agent()).prompts[0]).toContain('Bash (rm -rf build) was refused: Not the build directory.');
  });

  test('a message queued behind it is sent along with the answer, or named if that is not possible', async () => {
    const queueBehind = async (): Promise<Session> => {
      const session = await start();
      const agent = hub.agents.at(-1)!;
      void agent.ask(`r-${session.id}`, 'Bash', { command: 'npm test' });
      await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
      agent.send = (_text, messageId) => agent.say({ kind: 'delivery', messageId, state: 'queued' });
      const disk = { kind: 'open', options: {} } as const;
      await hub.engine.reply({ sessionId: session.id, prompt: 'and then that', disk, whenBusy: 'queue' });
      await hub.journal.stored();
      expect(await queued(session)).toEqual(['and then that']);
      return session;
    };
    const queued = async ({ id }: Session): Promise<unknown[]> =>
      (await store.messages(id)).map(({ content }) => content);
    const session = await queueBehind();
    await restart();
    hub.engine.respond(session.id, `r-${session.id}`, { decision: 'deny', message: 'no' });
    const agent = await hub.agent();
    expect(agent.prompts[0]).toMatch(/was refused: no[^]*and then that$/);
    agent.answer('Done.');
    await hub.journal.stored();
    expect(await queued(session)).toEqual([]);
    expect((await recalled(session)).state).toBe('idle');

    const stuck = await queueBehind();
    await restart();
    (await recalled(stuck)).missing = ['API_TOKEN'];
    hub.engine.respond(stuck.id, `r-${stuck.id}`, { decision: 'allow' });
    await eventually(async () => (await recalled(stuck)).state === 'error', { what: 'the session has failed' });
    expect((await recalled(stuck)).conversation.result?.text).toContain('send again: "and then that"');
    await hub.journal.stored();
    expect(await queued(stuck)).toEqual([]);
  });

  test('keeps its decision if the hub is killed before the process learns of it', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    const between = await recalled(session);
    // Killed right after the decision: the process that should have received it never started.
    between.missing = ['API_TOKEN'];
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    await eventually(() => between.state === 'error', { what: 'the decision waits for the token' });
    await restart();
    const after = await recalled(session);
    after.missing = [];
    expect(await hub.journal.recall(session.id)).toMatchObject({ grants: [{ requestId: 'r1' }] });
    await hub.engine.reply({ sessionId: after.id, prompt: 'go on', disk: { kind: 'open', options: {} } });
    const agent = await hub.agent();
    expect(agent.prompts[0]).toMatch(/Bash \(npm test\) was allowed[^]*go on$/);
    expect(await agent.ask('r2', 'Bash', { command: 'npm test' })).toEqual({ behavior: 'allow' });
  });

  test('does not keep its process: that is parked, and an answer starts a new one', async () => {
    hub = await startTestHub(store, { argv: [...PARKS_SOON, '--permission-timeout-ms', '0'] });
    const session = await start();
    const first = await hub.agent();
    void first.ask('r1', 'Edit', { file_path: '/project/a.ts', old_string: 'a', new_string: 'b' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    hub.clock.advance(62_000);
    await eventually(() => !session.holdsPlace, { what: 'the process is parked' });
    expect({ state: session.state, requests: requestIds(session) }).toEqual({ state: 'waiting', requests: ['r1'] });
    await eventually(() => hub.audit.some(({ what }) => what === 'parked'), { what: 'the parking is audited' });
    // No timeout for working or resting sessions applies to waiting ones.
    hub.clock.advance(30 * 86_400_000);
    expect(hub.engine.find(session.id)?.state).toBe('waiting');
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    const again = await hub.agent();
    expect(again).not.toBe(first);
    expect(again.prompts[0]).toContain('Edit (');
  });

  test.each<[string, EventBody]>([
    ['a background task', { kind: 'background_tasks', count: 1 }],
    [
      'a running sub-agent',
      {
        kind: 'message',
        role: 'assistant',
        blocks: [{ kind: 'tool_call', toolUseId: 'a1', toolName: 'Agent', input: {} }],
      },
    ],
  ])('keeps the process while there is %s', async (_name, said) => {
    hub = await startTestHub(store, { argv: PARKS_SOON });
    const session = await start();
    const agent = await hub.agent();
    agent.say(said);
    void agent.ask('r1', 'Bash', { command: 'ls' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    hub.clock.advance(120_000);
    expect(session.hasProcess).toBe(true);
  });

  test('outlives a crash of Claude Code', async () => {
    const session = await start();
    const agent = await hub.agent();
    void agent.ask('r1', 'Bash', { command: 'ls' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    agent.die();
    expect({ state: session.state, requests: requestIds(session) }).toEqual({ state: 'waiting', requests: ['r1'] });
    hub.engine.respond(session.id, 'r1', { decision: 'deny', message: 'no' });
    expect((await hub.agent()).prompts[0]).toContain('was refused: no');
  });

  test('is settled by an interrupt and by a cancel, even without a process', async () => {
    for (const end of ['interrupt', 'cancel'] as const) {
      const session = await start();
      const agent = await hub.agent();
      void agent.ask(end, 'Bash', { command: 'ls' });
      await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
      agent.die();
      expect(await (end === 'cancel' ? session.cancel('enough', 'caller') : session.interrupt())).toBe(true);
      expect({ state: session.state, requests: requestIds(session) }).toEqual({
        state: end === 'cancel' ? 'cancelled' : 'interrupted',
        requests: [],
      });
      await hub.journal.stored();
      expect(await store.request(end)).toMatchObject({ outcome: { decision: 'deny', source: end } });
    }
    expect(hub.agents.filter(({ alive }) => alive)).toEqual([]);
  });

  test('expires while the hub is down, and Claude is told afterwards', async () => {
    hub = await startTestHub(store, { argv: ['--permission-timeout-ms', '60000'] });
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'ls' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await hub.journal.stored();
    const until = hub.clock.wallTime() + 3_600_000;
    hub.kill();
    hub = await startTestHub(store);
    hub.clock.setWallTime(until);
    hub.clock.advance(60_000);
    expect((await hub.agent()).prompts[0]).toContain('Nobody answered this request');
  });

  test('with a question passes the answer on as text', async () => {
    const session = await start();
    const questions = [{ question: 'Which one?', header: 'Choice', options: [{ label: 'A' }, { label: 'B' }] }];
    void (await hub.agent()).ask('r1', 'AskUserQuestion', { questions });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    hub.engine.respond(session.id, 'r1', { decision: 'allow', answers: { 'Which one?': 'B' } });
    expect((await hub.agent()).prompts[0]).toMatch(/was answered: .*"Which one\?":"B"/);
  });

  test('for a plan can be allowed after a restart, and the plan is not reviewed twice', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'ExitPlanMode', { plan: 'First this, then that.' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    expect((await recalled(session)).requests).toMatchObject([{ kind: 'plan_review', plan: 'First this, then that.' }]);
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    const agent = await hub.agent();
    expect(agent.prompts[0]).toContain('was allowed');
    expect(await agent.ask('r2', 'ExitPlanMode', { plan: 'First this, then that.' })).toEqual({ behavior: 'allow' });
  });

  test('from a dead sub-agent is passed on to the main agent', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'ls' }, 'agent-1');
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    expect((await hub.agent()).prompts[0]).toContain('A sub-agent asked for it and ended with the process');
  });

  test('allowed but not repeated: the result says so, and the grant is gone', async () => {
    const session = await start();
    void (await hub.agent()).ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => requestIds(session).length === 1, { what: 'the request is open' });
    await restart();
    hub.engine.respond(session.id, 'r1', { decision: 'allow' });
    (await hub.agent()).answer('I did something else.');
    const after = await recalled(session);
    expect(after.conversation.result?.text).toContain('Allowed while the session was stopped, but not repeated: Bash.');
    await hub.journal.stored();
    expect(await store.grants(session.id)).toEqual([]);
  });
});
