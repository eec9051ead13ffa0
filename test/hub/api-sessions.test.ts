/** The API over the real engine, its journal and a store, with scripted agents. */

import { expect, test } from 'vitest';
import {
  apiSessionDetail,
  requestsPage,
  sessionsPage,
  type ApiError,
  type AnsweredRequest,
  type StopAnswer,
  type TurnAnswer,
} from '../../src/schema/api.ts';
import { eventsPage } from '../../src/schema/api-events.ts';
import { STORES } from '../store/stores.ts';
import { ADMIN, APPROVER, CALLER, openApi, OTHER, type ApiWorld } from './api-world.ts';
import { startTestHub, type TestHub } from './test-hub.ts';

async function open(argv: readonly string[] = []): Promise<{ world: ApiWorld; hub: TestHub }> {
  const store = await STORES.sqlite();
  const hub = await startTestHub(store, { argv });
  const { approvals } = hub.engine.settings;
  return { hub, world: await openApi({ store, hub, settings: { approvals } }) };
}

async function started({ world, hub }: { world: ApiWorld; hub: TestHub }, prompt = 'fix it') {
  const starting = world.call(CALLER, 'POST', '/api/v1/sessions', { body: { prompt, cwd: process.cwd() } });
  const agent = await hub.agent();
  const { status, json } = await starting;
  expect(status).toBe(201);
  return { agent, id: (json as TurnAnswer).session.sessionId };
}

const detail = async (world: ApiWorld, id: string, principal = CALLER) =>
  apiSessionDetail.parse((await world.call(principal, 'GET', `/api/v1/sessions/${id}`)).json);

const inbox = async (world: ApiWorld, principal = APPROVER) =>
  requestsPage.parse((await world.call(principal, 'GET', '/api/v1/requests')).json).requests;

test('a session runs from start to result, with its request answered by an approver', async () => {
  const here = await open();
  const { world, hub } = here;
  const reader = await world.stream(APPROVER, '/api/v1/events');
  const { agent, id } = await started(here);
  expect(await detail(world, id)).toMatchObject({ status: 'running', title: 'fix it', owner: { name: 'carl' } });

  const decision = agent.ask('r1', 'Bash', { command: 'npm test' });
  await expect
    .poll(() => inbox(world))
    .toMatchObject([
      { requestId: 'r1', sessionId: id, toolName: 'Bash', input: { command: 'npm test' }, mayAnswer: true },
    ]);
  const answer = await world.call(APPROVER, 'POST', '/api/v1/requests/r1/answer', {
    body: { decision: 'deny', message: 'not now' },
  });
  expect(answer.status).toBe(200);
  expect((answer.json as AnsweredRequest).request).toMatchObject({
    status: 'settled',
    outcome: { decision: 'deny', by: 'paul', source: 'human', message: 'not now' },
  });
  expect(await decision).toMatchObject({ behavior: 'deny', message: 'not now' });
  const late = await world.call(CALLER, 'POST', '/api/v1/requests/r1/answer', { body: { decision: 'allow' } });
  expect(late.status).toBe(409);
  expect((late.json as ApiError).outcome).toMatchObject({ decision: 'deny', by: 'paul' });

  agent.answer('Done without it.');
  await expect.poll(() => detail(world, id)).toMatchObject({ status: 'idle', result: { result: 'Done without it.' } });
  const page = eventsPage.parse((await world.call(CALLER, 'GET', `/api/v1/sessions/${id}/events`)).json);
  expect(page.events.map(({ data }) => data.kind)).toEqual(
    expect.arrayContaining(['message', 'permission_request', 'permission_result', 'result']),
  );
  await expect
    .poll(() => reader.events.map(({ event }) => event))
    .toEqual(expect.arrayContaining(['live', 'session', 'event', 'request']));
  expect(hub.audit).toContainEqual(
    expect.objectContaining({
      kind: 'decision',
      session: id,
      principal: 'paul',
      name: 'paul',
      details: { request: 'r1', by: 'paul' },
    }),
  );
  const calls = hub.audit.filter(({ kind }) => kind === 'tool_call');
  expect(calls).toMatchObject([
    { principal: 'carl', what: 'api startSession', outcome: 'ok', session: id },
    { principal: 'paul', what: 'api answerRequest', outcome: 'ok', session: id },
    { principal: 'carl', what: 'api answerRequest', outcome: 'PERMISSION_REQUEST_NOT_FOUND' },
  ]);
});

test('a session accepts messages while running and while at rest', async () => {
  const here = await open();
  const { world } = here;
  const { agent, id } = await started(here);
  const send = (prompt: string, more: object = {}) =>
    world.call(CALLER, 'POST', `/api/v1/sessions/${id}/messages`, { body: { prompt, ...more } });
  expect((await send('and this', { whenBusy: 'reject' })).status).toBe(409);
  expect((await send('and this')).status).toBe(200);
  await expect.poll(() => agent.prompts).toEqual(['fix it', 'and this']);
  agent.answer('All done.');
  await expect.poll(async () => (await detail(world, id)).status).toBe('idle');
  expect((await send('once more')).status).toBe(200);
  await expect.poll(() => agent.prompts).toHaveLength(3);
});

test('approvers and admins can cancel a session that other callers cannot see', async () => {
  const here = await open();
  const { world } = here;
  const { id } = await started(here);
  const cancel = (by: typeof CALLER) => world.call(by, 'POST', `/api/v1/sessions/${id}/cancel`, { body: {} });
  expect((await cancel(OTHER)).status).toBe(404);
  const { status, json } = await cancel(APPROVER);
  expect(status).toBe(200);
  expect(json as StopAnswer).toMatchObject({ done: true, session: { status: 'cancelled' } });
  expect((await cancel(ADMIN)).json as StopAnswer).toMatchObject({ done: false });
  const message = await world.call(CALLER, 'POST', `/api/v1/sessions/${id}/messages`, { body: { prompt: 'more' } });
  expect(message).toMatchObject({ status: 409, json: { error: { code: 'CANCELLED' } } });
});

test('with --approvals human, approvers can answer through the API, callers cannot', async () => {
  const here = await open(['--approvals', 'human']);
  const { world } = here;
  const { agent } = await started(here);
  const decision = agent.ask('r1', 'Bash', { command: 'ls' });
  await expect.poll(() => inbox(world, CALLER)).toMatchObject([{ requestId: 'r1', mayAnswer: false }]);
  const answer = (by: typeof CALLER) =>
    world.call(by, 'POST', '/api/v1/requests/r1/answer', { body: { decision: 'allow' } });
  for (const caller of [CALLER, { ...CALLER, attended: true }])
    expect(await answer(caller)).toMatchObject({ status: 403, json: { error: { code: 'PERMISSION_DENIED' } } });
  expect((await answer(APPROVER)).status).toBe(200);
  expect(await decision).toMatchObject({ behavior: 'allow' });
});

test('a prompt that is blank, or an option given twice with different values, is refused', async () => {
  const here = await open();
  const { world } = here;
  const { agent, id } = await started(here);
  const post = (path: string, body: object) =>
    world.call(CALLER, 'POST', `/api/v1/sessions${path}`, { body: { prompt: ' \n\t', ...body } });
  const cwd = process.cwd();
  for (const [path, body] of [
    ['', { cwd }],
    [`/${id}/messages`, {}],
    [`/${id}/fork`, {}],
    ['', { prompt: 'x', cwd, effort: 'low', advanced: { effort: 'high' } }],
  ] as const)
    expect(await post(path, body), `${path} ${JSON.stringify(body)}`).toMatchObject({
      status: 400,
      json: {
        error: { code: 'INVALID_ARGUMENT', message: expect.stringMatching(/not be blank|effort is given twice/) },
      },
    });
  expect(hubSessions(await world.call(CALLER, 'GET', '/api/v1/sessions'))).toEqual([id]);
  expect(agent.prompts).toHaveLength(1);
});

const hubSessions = ({ json }: { json: unknown }): string[] =>
  sessionsPage.parse(json).sessions.map(({ sessionId }) => sessionId);

test('an answer with what does not go with its decision is refused, and the request stays open', async () => {
  const here = await open();
  const { world } = here;
  const { agent } = await started(here);
  const decision = agent.ask('r1', 'Bash', { command: 'ls' });
  await expect.poll(() => inbox(world)).toHaveLength(1);
  const answer = (body: object) => world.call(CALLER, 'POST', '/api/v1/requests/r1/answer', { body });
  for (const [body, named] of [
    [{ decision: 'deny', always: true }, 'always'],
    [{ decision: 'deny', acceptEdits: true }, 'acceptEdits'],
    [{ decision: 'deny', updatedInput: { command: 'ls -l' } }, 'updatedInput'],
    [{ decision: 'deny', answers: ['yes'], confirm: 'x' }, 'answers, confirm'],
    [{ decision: 'allow', interrupt: true }, 'interrupt'],
  ] as const)
    expect(await answer(body)).toMatchObject({
      status: 400,
      json: { error: { code: 'INVALID_ARGUMENT', message: expect.stringContaining(`${named}: only valid with`) } },
    });
  expect(await inbox(world)).toHaveLength(1);
  expect((await answer({ decision: 'deny', always: false, message: 'no' })).status).toBe(200);
  expect(await decision).toMatchObject({ behavior: 'deny', message: 'no' });
});

test('a start without a directory, or outside the allowed ones, is refused', async () => {
  const { world } = await open(['--allowed-dirs', import.meta.dirname]);
  const start = (body: object) => world.call(CALLER, 'POST', '/api/v1/sessions', { body: { prompt: 'x', ...body } });
  expect((await start({})).status).toBe(400);
  expect((await start({ cwd: process.cwd() })).status).toBe(403);
});
