import { describe, expect, test } from 'vitest';
import { DomainError } from '../../src/errors/errors.ts';
import { apiError, apiMe, apiRequest, apiSessionDetail, requestsPage, sessionsPage } from '../../src/schema/api.ts';
import { eventsPage } from '../../src/schema/api-events.ts';
import type { CommandOf } from '../../src/schema/commands.ts';
import { tokensAnswer } from '../../src/schema/api-admin.ts';
import type { Principal } from '../../src/engine/rules/access.ts';
import { allow, append, ask, event, put, request, session, settle } from '../store/rows.ts';
import {
  ADMIN,
  APPROVER,
  CALLER,
  openApi,
  assistantMessage,
  OTHER,
  VIEWER,
  type ApiWorld,
  type WorldOptions,
} from './api-world.ts';

/** Carl has two sessions, one of them with an open request; Olga has one. */
async function openWithSessions(options: WorldOptions = {}): Promise<ApiWorld> {
  const world = await openApi(options);
  const { hub } = world;
  const edit = { file_path: '/work/s1/a.ts', old_string: 'x'.repeat(40_000), new_string: 'y' };
  await world.write(
    put(
      session('s1', hub, { principal: 'carl', title: 'Fix the shop', state: { tag: 'waiting', activity: '2 tools' } }),
    ),
    put(session('s2', hub, { principal: 'carl', state: { tag: 'idle' } })),
    put(session('s3', hub, { principal: 'olga', state: { tag: 'running' } })),
    assistantMessage('s1', 1),
    assistantMessage('s1', 2),
    ask(
      request('s1', 'r1', { ask: { toolName: 'Edit', input: edit, toolUseId: 't1', cwd: '/work/s1', said: 'Now.' } }),
    ),
    ask(request('s3', 'r3')),
  );
  return world;
}

describe('reading', () => {
  test('a caller sees its own sessions; viewers, approvers and admins see all', async () => {
    const world = await openWithSessions();
    const idsFor = async (principal: Principal): Promise<string[]> => {
      const { json } = await world.call(principal, 'GET', '/api/v1/sessions');
      return sessionsPage
        .parse(json)
        .sessions.map(({ sessionId }) => sessionId)
        .sort();
    };
    expect(await idsFor(CALLER)).toEqual(['s1', 's2']);
    expect(await idsFor(OTHER)).toEqual(['s3']);
    for (const reader of [VIEWER, APPROVER, ADMIN]) expect(await idsFor(reader)).toEqual(['s1', 's2', 's3']);
  });

  test('sensitive options are shown unless the operator has disabled that', async () => {
    const options = { effort: 'low', systemPrompt: 'Be brief.', additionalDirectories: ['/elsewhere'] };
    const shown = async (allowSensitiveSessionDetails: boolean): Promise<unknown> => {
      const world = await openApi({ settings: { allowSensitiveSessionDetails } });
      await world.write(put(session('s1', world.hub, { principal: 'carl', options })));
      return apiSessionDetail.parse((await world.call(CALLER, 'GET', '/api/v1/sessions/s1')).json).options;
    };
    expect(await shown(true)).toEqual(options);
    expect(await shown(false)).toEqual({ effort: 'low' });
  });

  test('sessions can be filtered by status, text and owner', async () => {
    const world = await openWithSessions();
    const ids = async (query: string): Promise<string[]> => {
      const { json } = await world.call(ADMIN, 'GET', `/api/v1/sessions?${query}`);
      return sessionsPage.parse(json).sessions.map(({ sessionId }) => sessionId);
    };
    expect(await ids('status=waiting_permission')).toEqual(['s1']);
    expect((await ids('status=idle,running')).sort()).toEqual(['s2', 's3']);
    expect(await ids('search=shop')).toEqual(['s1']);
    expect(await ids('owner=olga')).toEqual(['s3']);
  });

  test('a list can be read page by page', async () => {
    const world = await openWithSessions();
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const cursor: string = after === undefined ? '' : `&after=${encodeURIComponent(after)}`;
      const { json } = await world.call(ADMIN, 'GET', `/api/v1/sessions?limit=1${cursor}`);
      const page = sessionsPage.parse(json);
      seen.push(...page.sessions.map(({ sessionId }) => sessionId));
      after = page.next;
    } while (after !== undefined);
    expect(seen.sort()).toEqual(['s1', 's2', 's3']);
  });

  test('a session has everything its page shows, and lists only the actions of the role', async () => {
    const world = await openWithSessions();
    const { json } = await world.call(CALLER, 'GET', '/api/v1/sessions/s1');
    expect(apiSessionDetail.parse(json)).toMatchObject({
      sessionId: 's1',
      status: 'waiting_permission',
      title: 'Fix the shop',
      activity: '2 tools',
      owner: { id: 'carl', name: 'carl' },
      lastEventId: 2,
      requests: [{ requestId: 'r1', mayAnswer: true }],
      may: ['message', 'fork', 'interrupt', 'cancel'],
    });
    const mayOf = async (principal: Principal): Promise<string[]> =>
      apiSessionDetail.parse((await world.call(principal, 'GET', '/api/v1/sessions/s1')).json).may;
    expect(await mayOf(VIEWER)).toEqual([]);
    expect(await mayOf(APPROVER)).toEqual(['interrupt', 'cancel']);
    expect(await mayOf(ADMIN)).toEqual(['message', 'fork', 'interrupt', 'cancel']);
  });

  test('another principal’s session gets the same error as one that does not exist', async () => {
    const world = await openWithSessions();
    const paths = (id: string): string[] => [
      `/api/v1/sessions/${id}`,
      `/api/v1/sessions/${id}/events`,
      `/api/v1/sessions/${id}/diff`,
    ];
    for (const [index, path] of paths('s3').entries()) {
      const foreign = await world.call(CALLER, 'GET', path);
      expect(foreign).toMatchObject({ status: 404, json: { error: { code: 'SESSION_NOT_FOUND' } } });
      const never = await world.call(CALLER, 'GET', paths('s9')[index] ?? '');
      expect(JSON.stringify(foreign).replaceAll('s3', 's9')).toBe(JSON.stringify(never));
    }
    expect((await world.call(CALLER, 'GET', '/api/v1/requests/r3')).status).toBe(404);
    expect(world.reached).toEqual([]);
  });

  test('events can be read from an id onwards', async () => {
    const world = await openWithSessions();
    const read = async (query: string): Promise<unknown> =>
      eventsPage.parse((await world.call(CALLER, 'GET', `/api/v1/sessions/s1/events${query}`)).json);
    expect(await read('')).toMatchObject({ events: [{ id: 1 }, { id: 2 }], lastId: 2, droppedThrough: 0 });
    expect(await read('?after=1')).toMatchObject({ events: [{ id: 2 }] });
    expect(await read('?limit=1')).toMatchObject({ events: [{ id: 1 }], lastId: 2 });
  });

  test('images that came with results are pictures and nothing else, in JSON', async () => {
    const world = await openWithSessions();
    const picture = (media_type: string) => ({ type: 'image', source: { type: 'base64', media_type, data: 'aGk=' } });
    const content = [picture('image/png'), picture('image/svg+xml'), picture('text/html')];
    const result = { type: 'tool_result', tool_use_id: 't1', content };
    const original = { message: { type: 'user', message: { role: 'user', content: [result] } } };
    const block = { kind: 'tool_result', toolUseId: 't1', output: '', isError: false, images: 3 };
    const body = { kind: 'message', role: 'user', blocks: [block] };
    await world.write(append(event('s1', 3, { data: { body, original } })));
    const read = (principal: Principal, id: number) =>
      world.call(principal, 'GET', `/api/v1/sessions/s1/events/${id}/images`);
    expect((await read(CALLER, 3)).json).toEqual({
      images: [{ toolUseID: 't1', mediaType: 'image/png', data: 'aGk=' }],
    });
    expect((await read(CALLER, 2)).json).toEqual({ images: [] });
    expect((await read(CALLER, 9)).json).toEqual({ images: [] });
    expect((await read(OTHER, 3)).status).toBe(404);
  });

  test('the inbox shows a request with its full input and whether the reader may answer it', async () => {
    const world = await openWithSessions();
    const inboxOf = async (principal: Principal) =>
      requestsPage.parse((await world.call(principal, 'GET', '/api/v1/requests')).json).requests;
    const [own, ...none] = await inboxOf(CALLER);
    expect(none).toEqual([]);
    expect(own).toMatchObject({ requestId: 'r1', toolName: 'Edit', said: 'Now.', session: { title: 'Fix the shop' } });
    expect(String(own?.input['old_string'])).toHaveLength(40_000);
    expect((await inboxOf(APPROVER)).map(({ requestId, mayAnswer }) => [requestId, mayAnswer])).toEqual([
      ['r1', true],
      ['r3', true],
    ]);
    expect((await inboxOf(VIEWER)).every(({ mayAnswer }) => !mayAnswer)).toBe(true);
  });

  test('/me gives the role and its rights; with approvals=human a caller may not answer', async () => {
    const world = await openApi();
    const me = apiMe.parse((await world.call(CALLER, 'GET', '/api/v1/me')).json);
    expect(me).toMatchObject({ principal: { id: 'carl', role: 'caller' }, hub: { version: '1.2.3' } });
    expect(me.may).toEqual({ start: true, answer: 'own', readAll: false, readAudit: false, manageTokens: false });
    const human = await openApi({ settings: { approvals: 'human' } });
    expect(apiMe.parse((await human.call(CALLER, 'GET', '/api/v1/me')).json).may.answer).toBe('none');
    expect(apiMe.parse((await human.call(APPROVER, 'GET', '/api/v1/me')).json).may.answer).toBe('all');
  });

  test.each([
    ['GET', '/api/v1/sessions?limit=0'],
    ['GET', '/api/v1/sessions?limit=1&limit=2'],
    ['GET', '/api/v1/sessions?stauts=idle'],
    ['GET', '/api/v1/sessions?status=sleeping'],
    ['GET', '/api/v1/sessions?after=nonsense'],
    ['GET', '/api/v1/requests?after=nonsense'],
    ['GET', '/api/v1/sessions/s1/events?after=-1'],
    ['POST', '/api/v1/sessions'],
  ])('%s %s is refused as an invalid argument', async (method, path) => {
    const world = await openWithSessions();
    const { status, json } = await world.call(ADMIN, method, path, method === 'POST' ? { body: { promt: 'x' } } : {});
    expect(status).toBe(400);
    expect(apiError.parse(json).error.code).toBe('INVALID_ARGUMENT');
  });
});

describe('answering', () => {
  /** Settles in the store, as the engine and its journal do. */
  function settling(world: ApiWorld): void {
    world.engine['respond'] = async (principal, command) => {
      const { sessionId, requestId, answer } = command as CommandOf<'respond'>;
      const row = await world.store.request(requestId);
      if (!row || row.outcome) throw new DomainError('PERMISSION_REQUEST_NOT_FOUND', 'settled');
      await world.write(settle(row, { ...allow(principal.id), decision: answer.decision }));
      return { sessionId, warnings: [] };
    };
  }

  test.each(['before', 'after'])(
    'an answer can be sent again with its key when its hub was killed %s it was decided',
    async (killed) => {
      const before = await openWithSessions();
      const answer = (world: ApiWorld) =>
        world.call(APPROVER, 'POST', '/api/v1/requests/r1/answer', { key: 'k1', body: { decision: 'deny' } });
      settling(before);
      const settle = before.engine['respond'];
      let isReached = false;
      before.engine['respond'] = async (...args) => {
        if (killed === 'after') await settle?.(...args);
        isReached = true;
        return new Promise(() => {});
      };
      void answer(before);
      await expect.poll(() => isReached).toBe(true);
      const world = await openApi({ store: before.store });
      world.engine['respond'] = () => ({ sessionId: 's1', warnings: [] });
      const again = await answer(world);
      expect(world.reached).toHaveLength(killed === 'before' ? 1 : 0);
      expect(again).toMatchObject({ status: 200, json: { request: { requestId: 'r1' } } });
    },
  );

  test('the first answer counts; the second gets the outcome and its author', async () => {
    const world = await openWithSessions();
    settling(world);
    const answer = (principal: Principal, decision: string) =>
      world.call(principal, 'POST', '/api/v1/requests/r1/answer', { body: { decision, message: 'no' } });
    const first = await answer(APPROVER, 'deny');
    expect(first.status).toBe(200);
    expect(first.json).toMatchObject({ request: { status: 'settled', outcome: { decision: 'deny', by: 'paul' } } });
    expect(apiRequest.parse((first.json as { request: unknown }).request).mayAnswer).toBe(false);
    const second = await answer(CALLER, 'allow');
    expect(second.status).toBe(409);
    expect(apiError.parse(second.json)).toMatchObject({
      error: { code: 'PERMISSION_REQUEST_NOT_FOUND' },
      outcome: { decision: 'deny', by: 'paul', source: 'human' },
    });
    expect(world.reached).toHaveLength(1);
  });

  test('only one of two concurrent answers counts', async () => {
    const world = await openWithSessions();
    settling(world);
    const answers = await Promise.all(
      [APPROVER, ADMIN].map((principal) =>
        world.call(principal, 'POST', '/api/v1/requests/r1/answer', { body: { decision: 'allow' } }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test('an unknown id, or another caller’s, is not found', async () => {
    const world = await openWithSessions();
    for (const id of ['r9', 'r3']) {
      const { status } = await world.call(CALLER, 'POST', `/api/v1/requests/${id}/answer`, {
        body: { decision: 'allow' },
      });
      expect(status).toBe(404);
    }
    expect(world.reached).toEqual([]);
  });

  test('a viewer cannot answer', async () => {
    const world = await openWithSessions();
    const { status } = await world.call(VIEWER, 'POST', '/api/v1/requests/r1/answer', { body: { decision: 'allow' } });
    expect(status).toBe(403);
  });
});

describe('acting', () => {
  test('a start needs a directory, and returns the stored session', async () => {
    const world = await openApi();
    world.engine['start'] = async () => {
      await world.write(put(session('new', world.hub, { principal: 'carl', state: { tag: 'running' } })));
      return { sessionId: 'new', warnings: ['mind the gap'] };
    };
    const without = await world.call(CALLER, 'POST', '/api/v1/sessions', { body: { prompt: 'hello' } });
    expect(without).toMatchObject({
      status: 400,
      json: { error: { message: expect.stringContaining('cwd') as string } },
    });
    const body = { prompt: 'hello', cwd: '/work', advanced: { effort: 'low' }, maxTurns: 3 };
    const started = await world.call(CALLER, 'POST', '/api/v1/sessions', { body });
    expect(started).toMatchObject({ status: 201, json: { session: { sessionId: 'new' }, warnings: ['mind the gap'] } });
    expect(world.reached).toMatchObject([
      ['carl', 'start', { prompt: 'hello', options: { cwd: '/work', effort: 'low', maxTurns: 3 } }],
    ]);
  });

  test('messages, forks and stops reach the engine on behalf of the calling principal', async () => {
    const world = await openWithSessions();
    world.engine = Object.assign(world.engine, {
      reply: () => ({ sessionId: 's1', warnings: [] }),
      interrupt: () => true,
      cancel: () => false,
    });
    const post = (principal: Principal, what: string, body: unknown = {}) =>
      world.call(principal, 'POST', `/api/v1/sessions/s1/${what}`, { body });
    expect((await post(CALLER, 'messages', { prompt: 'go on' })).status).toBe(200);
    expect((await post(CALLER, 'fork', { prompt: 'or so' })).status).toBe(201);
    expect(await post(APPROVER, 'interrupt')).toMatchObject({ status: 200, json: { done: true } });
    expect(await post(ADMIN, 'cancel')).toMatchObject({ status: 200, json: { done: false } });
    expect(world.reached).toMatchObject([
      ['carl', 'reply', { sessionId: 's1', prompt: 'go on', fork: false, whenBusy: 'queue' }],
      ['carl', 'reply', { sessionId: 's1', prompt: 'or so', fork: true }],
      ['paul', 'interrupt', { sessionId: 's1' }],
      ['anna', 'cancel', { sessionId: 's1' }],
    ]);
    expect((await post(APPROVER, 'messages', { prompt: 'x' })).status).toBe(403);
    expect((await post(VIEWER, 'cancel')).status).toBe(403);
    expect((await post(OTHER, 'cancel')).status).toBe(404);
  });

  test('an action that needs approval returns the request at once', async () => {
    const world = await openWithSessions();
    world.engine['apply'] = async () => ({ asked: 'own' });
    const answer = await world.call(CALLER, 'POST', '/api/v1/sessions/s2/apply', { body: {} });
    expect(answer).toEqual({ status: 202, json: { outcome: 'awaits_person', requestId: 'own' } });
  });

  test('an action that needs no approval returns its outcome', async () => {
    const world = await openWithSessions();
    world.engine['rewind'] = () => ({ dryRun: true, files: ['a'], left: [], lines: undefined });
    world.engine['discard'] = () => ({ path: '/w', keptBranches: ['claude/1'] });
    const rewind = await world.call(CALLER, 'POST', '/api/v1/sessions/s2/rewind', { body: { toUserMessage: 'u1' } });
    expect(rewind).toEqual({ status: 200, json: { outcome: 'done', dryRun: true, files: ['a'], left: [] } });
    const discard = await world.call(CALLER, 'POST', '/api/v1/sessions/s2/discard', { body: { force: true } });
    expect(discard).toEqual({ status: 200, json: { outcome: 'discarded', path: '/w', keptBranches: ['claude/1'] } });
  });
});

describe('tokens', () => {
  test('an admin creates, lists and revokes them; the secret is shown once', async () => {
    const world = await openApi();
    const made = await world.call(ADMIN, 'POST', '/api/v1/tokens', {
      body: { name: 'ci', role: 'caller', expires: '30d' },
    });
    expect(made).toMatchObject({ status: 201, json: { name: 'ci', role: 'caller' } });
    const { id, token } = made.json as { id: string; token: string };
    const listed = tokensAnswer.parse((await world.call(ADMIN, 'GET', '/api/v1/tokens')).json);
    expect(listed.tokens).toMatchObject([{ id, name: 'ci', status: 'active' }]);
    expect(JSON.stringify(listed)).not.toContain(token);
    const revoked = await world.call(ADMIN, 'DELETE', `/api/v1/tokens/${id}`);
    expect(revoked).toMatchObject({ status: 200, json: { token: { status: 'revoked' } } });
    expect((await world.call(ADMIN, 'DELETE', '/api/v1/tokens/t_none')).status).toBe(404);
  });

  test.each([VIEWER, CALLER, APPROVER])('$role may not manage them', async (principal) => {
    const world = await openApi();
    expect((await world.call(principal, 'GET', '/api/v1/tokens')).status).toBe(403);
    const body = { name: 'x', role: 'admin' };
    expect((await world.call(principal, 'POST', '/api/v1/tokens', { body })).status).toBe(403);
  });
});
