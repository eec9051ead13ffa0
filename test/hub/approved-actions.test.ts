/** Actions that a person must allow: when the hub dies before they are done, and through another hub. */

import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Principal } from '../../src/engine/rules/access.ts';
import type { WorkspaceModule } from '../../src/engine/ports.ts';
import type { Session } from '../../src/engine/session/session.ts';
import type { Store } from '../../src/store/contract.ts';
import { fullWork, workReport } from '../../src/workspace/report/work-report.ts';
import { Workspaces, type Workspace } from '../../src/workspace/workspace.ts';
import { IDLE, RUNNING, resultEvent, textEvent } from '../harness/agent-messages.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { openScene, type Scene } from '../workspace/scene.ts';
import { ANN, TestClient } from './test-client.ts';
import { startTestHub, type FakeAgent, type TestHub, type TestHubOptions } from './test-hub.ts';

const EVE: Principal = { id: 'person:eve', name: 'eve', kind: 'person', role: 'approver', attended: true };
const NEVER = new Promise<never>(() => undefined);

let scene: Scene;
let store: Store;
const hubs: TestHub[] = [];

beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', { 'a.txt': 'one\n' });
  store = await STORES.sqlite();
});
afterEach(async () => {
  for (const hub of hubs.splice(0)) hub.kill();
  await scene.close();
});

/** A hub whose worktrees are real; `differs` replaces some of their operations. */
async function startHub(differs: Partial<Workspace> = {}, options: TestHubOptions = {}): Promise<TestHub> {
  const { worktreesDir } = scene.worktrees;
  const snapshotsDir = path.join(scene.root, 'snapshots');
  const workspaces = new Workspaces({ env: scene.host.env, worktreesDir, snapshotsDir });
  const openWorktree = workspaces.openWorktree.bind(workspaces);
  workspaces.openWorktree = async (request) => ({ ...(await openWorktree(request)), ...differs });
  const hub = await startTestHub(store, {
    argv: ['--approvals', 'human', '--worktrees-dir', worktreesDir],
    workspaces: async (): Promise<WorkspaceModule> => ({ workspaces, fullWork, workReport }),
    ...options,
  });
  hubs.push(hub);
  return hub;
}

const clientOf = (hub: TestHub, principal = ANN): TestClient => new TestClient(hub, principal);

async function start(hub: TestHub, options: object): Promise<{ session: Session; agent: FakeAgent }> {
  const { id } = await clientOf(hub).start({ prompt: 'go', options: { cwd: scene.repo, ...options } });
  return { session: hub.engine.session(id), agent: await hub.agent() };
}

async function rest(session: Session, agent: FakeAgent): Promise<void> {
  agent.answer('done');
  await eventually(() => session.atRest, { what: 'the session is at rest' });
}

function requestIn(outcome: object): string {
  if ('asked' in outcome && typeof outcome.asked === 'string') return outcome.asked;
  throw new Error(`nobody was asked: ${JSON.stringify(outcome)}`);
}

async function recalled(hub: TestHub, { id }: Session): Promise<Session> {
  const session = await hub.engine.finder.recall(id);
  if (!session) throw new Error('the hub has forgotten the session');
  return session;
}

const WORKTREE = { workspace: { type: 'worktree' } };

async function startWithWork(hub: TestHub): Promise<{ session: Session; agent: FakeAgent; requestId: string }> {
  const { session, agent } = await start(hub, WORKTREE);
  await scene.write('b.txt', 'x\n', session.worktree!.cwd);
  await rest(session, agent);
  const requestId = requestIn(await clientOf(hub).apply(session.id, { mode: 'squash', message: 'take it' }));
  return { session, agent, requestId };
}

test('an apply that was allowed when the hub was killed is carried out by the next one, once', async () => {
  const first = await startHub({ applyApproved: () => NEVER });
  const { session, requestId } = await startWithWork(first);
  await clientOf(first, EVE).respond(session.id, requestId, { decision: 'allow' });
  expect(session.state).toBe('running');
  await first.engine.stored();
  first.kill();
  expect(await scene.git('rev-list', '--count', 'main')).toBe('1');

  const second = await startHub();
  const after = await recalled(second, session);
  await eventually(() => after.atRest, { what: 'the action has ended' });
  expect(after).toMatchObject({ state: 'idle', requests: [] });
  expect(after.conversation.own.last).toMatchObject({ action: 'apply', requestId, outcome: 'applied' });
  expect(await scene.git('log', '--format=%s', 'main')).toBe('take it\nbegin');
  await second.engine.stored();
  second.kill();
  const third = await recalled(await startHub(), session);
  expect(third.record).toMatchObject({ state: 'idle', lastAction: after.conversation.own.last });
  expect(await scene.git('rev-list', '--count', 'main')).toBe('2');
});

test('nothing is done before its approval is stored', async () => {
  const applied: string[] = [];
  const hub = await startHub({
    applyApproved: async ({ commit }) => {
      applied.push(commit);
      return NEVER;
    },
  });
  const { session, requestId } = await startWithWork(hub);
  await hub.engine.stored();
  // As SIGKILL would: no write of this hub arrives any more.
  hub.kill();
  await clientOf(hub, EVE).respond(session.id, requestId, { decision: 'allow' });
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(applied).toEqual([]);
  const after = await recalled(await startHub(), session);
  expect(after.requests.map(({ id }) => id)).toEqual([requestId]);
});

test('a rewind that was under way when the hub was killed is not repeated: its outcome is unknown', async () => {
  const hub = await startHub();
  const { session, agent } = await start(hub, { enableFileCheckpointing: true });
  const file = path.join(scene.repo, 'a.txt');
  await writeFile(file, 'two\n');
  agent.say({ kind: 'file_written', path: file, before: { kind: 'text', text: 'one\n' } });
  const rewindFiles = async (_to: string, dryRun: boolean): Promise<object> =>
    dryRun ? { canRewind: true, filesChanged: [file], insertions: 1, deletions: 1 } : NEVER;
  Object.assign(agent, { rewindFiles });
  await rest(session, agent);
  const requestId = requestIn(await clientOf(hub).rewind(session.id, 'some-message', false));
  await clientOf(hub, EVE).respond(session.id, requestId, { decision: 'allow' });
  await hub.engine.stored();
  hub.kill();
  const after = await recalled(await startHub(), session);
  await eventually(() => after.atRest, { what: 'the action has ended' });
  expect(after.conversation.own.last).toMatchObject({ action: 'rewind', requestId, outcome: 'unknown' });
  expect(after.conversation.own.last?.message).toContain(`Check ${file}`);
  expect(await readFile(file, 'utf8')).toBe('two\n');
});

test('if the base moves before an apply is allowed, the person is asked again, about the same commit', async () => {
  const hub = await startHub();
  const { session, requestId } = await startWithWork(hub);
  const { commit } = session.findRequest(requestId)!.ask.input;
  await scene.write('b.txt', 'something else\n', session.worktree!.cwd);
  await scene.commit('moved on', { 'c.txt': 'c\n' });
  await clientOf(hub, EVE).respond(session.id, requestId, { decision: 'allow' });
  const again = await eventually(() => session.requests[0], { what: 'the person is asked again' });
  expect(session.state).toBe('waiting');
  expect(again.id).not.toBe(requestId);
  expect(again).toMatchObject({
    own: { opening: expect.stringContaining('main has moved') },
    ask: { input: { commit } },
  });
  expect(await scene.git('log', '-1', '--format=%s', 'main')).toBe('moved on');
  await clientOf(hub, EVE).respond(session.id, again.id, { decision: 'allow' });
  await eventually(() => session.atRest, { what: 'the action has ended' });
  expect(session.conversation.own.last).toMatchObject({ requestId: again.id, outcome: 'applied' });
  expect(await scene.read('b.txt')).toBe('x\n');
  expect(await scene.git('log', '--format=%s', 'main')).toBe('take it\nmoved on\nbegin');
});

test('neither a Claude that wakes up nor the loss of its process settles the request', async () => {
  const hub = await startHub();
  const { session, agent, requestId } = await startWithWork(hub);
  agent.say(RUNNING, textEvent('the server has ended'), resultEvent({ text: 'noticed' }), IDLE);
  expect(session.requests.map(({ id }) => id)).toEqual([requestId]);
  agent.die();
  expect(session).toMatchObject({ state: 'waiting' });
  await clientOf(hub, EVE).respond(session.id, requestId, { decision: 'deny', message: 'not yet', interrupt: true });
  expect(session.record).toMatchObject({ state: 'idle', turn: { text: 'noticed' } });
  expect(session.conversation.own.last).toMatchObject({ outcome: 'denied', message: 'Nothing was changed. not yet' });
  expect(await scene.git('rev-list', '--count', 'main')).toBe('1');
});

test('through another hub: the call returns the request at once, and the hub that runs the session carries it out', async () => {
  const fleet = (hub: string): TestHubOptions => ({ hub, isFleet: true, warn: () => undefined });
  const [a, b] = [await startHub({}, fleet('a')), await startHub({}, fleet('b'))];
  const { session, agent } = await start(a, WORKTREE);
  await scene.write('b.txt', 'x\n', session.worktree!.cwd);
  await rest(session, agent);
  await a.engine.stored();
  const requestId = requestIn(await clientOf(b).apply(session.id, { mode: 'merge' }));
  expect((await clientOf(b).read(session.id)).record).toMatchObject({ state: 'waiting' });
  await clientOf(b, EVE).respond(session.id, requestId, { decision: 'allow' });
  await eventually(() => session.atRest, { what: 'the action has ended' });
  await a.engine.stored();
  const { record: seen } = await clientOf(b).read(session.id);
  expect(seen).toMatchObject({ state: 'idle', lastAction: { action: 'apply', requestId, outcome: 'applied' } });
  expect(await scene.read('b.txt')).toBe('x\n');
});
