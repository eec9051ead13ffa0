import { join } from 'node:path';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import { runCommandIn } from '../harness/run-command.ts';
import { pollAll } from '../e2e/steps.ts';

const shared = shareHarness({ git: true, hub: {} });
const bash = (command: string) => tool('Bash', { command, description: 'x' });
const tokens: Record<string, { id: string; token: string }> = {};

beforeAll(async () => {
  const h = shared();
  mkdirSync(join(h.project, 'docs'));
  const place = { project: h.project, env: () => h.environment() };
  for (const role of ['viewer', 'caller', 'approver', 'admin']) {
    const { stdout } = await runCommandIn(place, { args: ['token', 'create', role, '--role', role, '--json'] });
    tokens[role] = JSON.parse(stdout);
  }
});

async function call(
  role: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; json: Json }> {
  const { url } = readHubRecord(join(shared().stateDir, 'claude-code-mcp'))!;
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${tokens[role]!.token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, json: await answer.json() };
}

async function turn(prompt: string, ...calls: ReturnType<typeof tool>[]): Promise<Json> {
  const h = shared();
  h.model.on(prompt).reply(...calls, text('done'));
  const sessionId = await h.converse(prompt);
  return h.waitFor(sessionId, ({ status }) => status !== 'running', { what: 'it rests or asks' });
}

async function outcomes(sessionId: string): Promise<Json[]> {
  const events = await pollAll(shared(), sessionId, { responseMode: 'full' });
  return events.filter(({ type }) => type === 'permission_result').map(({ data }) => data);
}

test('a rule made beside Allow answers from then on, counted and named', async () => {
  const h = shared();
  const { sessionId } = await turn('first run', bash('make ok'));
  const { json: inbox } = await call('approver', 'GET', '/requests');
  const [request] = inbox.requests;
  expect(request.suggestedRule).toEqual({ decision: 'allow', tool: 'Bash', match: 'make ok', directory: h.project });
  const replay = await call('approver', 'POST', '/rules/replay', request.suggestedRule);
  expect(replay).toMatchObject({ status: 200, json: { matched: 0, allowed: 0, denied: 0 } });
  expect(replay.json.warnings.join()).toContain("project's own code");

  const { directory: _, ...fields } = request.suggestedRule;
  const made = await call('approver', 'POST', '/rules', { ...fields, requestId: request.requestId });
  expect(made).toMatchObject({ status: 201, json: { rule: { directory: h.project, enabled: true, uses: 0 } } });
  const { id } = made.json.rule;
  // What is already open is for people to answer.
  expect((await call('approver', 'GET', '/requests')).json.requests).toHaveLength(1);
  expect((await call('approver', 'POST', `/requests/${request.requestId}/answer`, { decision: 'deny' })).status).toBe(
    200,
  );
  await h.finish(sessionId);

  const done = await turn('second run', bash('make ok'));
  expect(done).toMatchObject({ status: 'idle' });
  const author = `token:${tokens['approver']!.id}`;
  expect((await outcomes(sessionId)).at(-1)).toMatchObject({ decision: 'allow', by: 'rule', rule: { id, author } });
  const used = await eventually(
    async () =>
      (await call('viewer', 'GET', '/rules')).json.rules.find((rule: Json) => rule.id === id && rule.uses === 1),
    { what: 'its use is counted' },
  );
  expect(used).toMatchObject({
    createdBy: author,
    author: 'approver',
    lastUsedAt: expect.any(String),
    mayChange: false,
  });
  expect((await call('viewer', 'POST', '/rules/replay', request.suggestedRule)).json).toMatchObject({
    matched: 1,
    denied: 1,
    requests: [{ decision: 'deny', source: 'human', summary: 'make ok' }],
  });

  const asked = async (prompt: string): Promise<void> => {
    const { status, actions } = await turn(prompt, bash('make ok'));
    expect(status).toBe('waiting_permission');
    await call('approver', 'POST', `/requests/${actions[0].requestId}/answer`, { decision: 'deny' });
    await h.finish(sessionId);
  };
  await call('approver', 'PATCH', `/rules/${id}`, { enabled: false });
  await asked('while it is disabled');
  await call('approver', 'PATCH', `/rules/${id}`, {
    enabled: true,
    expiresAt: new Date(Date.now() + 60_000).toISOString(),
  });
  expect(await turn('enabled again', bash('make ok'))).toMatchObject({ status: 'idle' });
  await call('approver', 'PATCH', `/rules/${id}`, { note: 'for now', principal: 'nobody' });
  const cleared = await call('approver', 'PATCH', `/rules/${id}`, { note: null, principal: null, expiresAt: null });
  for (const field of ['note', 'principal', 'expiresAt']) expect(cleared.json.rule).not.toHaveProperty(field);
  expect((await call('approver', 'PATCH', `/rules/${id}`, { directory: null })).status).toBe(403);
  expect((await call('admin', 'DELETE', `/rules/${id}`)).status).toBe(200);
  await asked('once it is removed');
  expect((await call('admin', 'DELETE', `/rules/${id}`)).status).toBe(404);
});

test('a rule that denies or asks also holds in a process that runs already', async () => {
  const h = shared();
  const run = (prompt: string): Promise<Json> => turn(prompt, bash('ls docs'));
  expect(await run('list once')).toMatchObject({ status: 'idle', result: { work: { commandsRun: 1 } } });
  const deny = { decision: 'deny', tool: 'Bash(ls docs)', directory: h.project, note: 'not here' };
  const { json } = await call('approver', 'POST', '/rules', deny);
  const denied = await eventually(
    async () => {
      const { result } = await run('list it now');
      return result.permissionDenials?.[0];
    },
    { what: 'it is denied' },
  );
  expect(denied).toMatchObject({ by: 'rule', rule: { id: json.rule.id } });
  // Claude Code refused it unasked: that counts and is audited as well.
  const audited = await eventually(
    async () => (await call('viewer', 'GET', '/audit?decision=deny&search=ls%20docs&limit=1')).json.entries[0],
    { what: 'the denial is audited' },
  );
  const { id, createdBy: author } = json.rule;
  expect(audited).toMatchObject({
    who: 'rule',
    what: 'Bash',
    target: 'ls docs',
    details: { by: 'rule', rule: id, author },
  });
  const { json: log } = await call('viewer', 'GET', `/sessions/${audited.session}/events`);
  expect(log.events.map(({ data }: Json) => data)).toContainEqual(
    expect.objectContaining({ kind: 'tool_refused', by: 'rule', rule: { id, author } }),
  );
  await eventually(
    async () =>
      (await call('viewer', 'GET', '/rules')).json.rules.some((rule: Json) => rule.id === id && rule.uses > 0),
    { what: 'its use is counted' },
  );
  await call('approver', 'PATCH', `/rules/${json.rule.id}`, { decision: 'ask' });
  const asking = await eventually(
    async () => {
      const state = await run('list it with a question');
      return state.status === 'waiting_permission' && state;
    },
    { what: 'it is asked about' },
  );
  await call('approver', 'POST', `/requests/${asking.actions[0].requestId}/answer`, { decision: 'allow' });
  await h.finish(asking.sessionId);
  await call('approver', 'DELETE', `/rules/${json.rule.id}`);
  await eventually(async () => (await run('list it again')).result?.work.commandsRun === 1, { what: 'it runs again' });
});

test('a rule for one principal, or for a directory that only begins alike, answers nobody else', async () => {
  const h = shared();
  const narrow = [
    { principal: `token:${tokens['caller']!.id}`, directory: h.project },
    { principal: 'loc\u0430l' },
    { principal: 'local:x' },
    { directory: `${h.project}-2` },
    { directory: join(h.project, 'docs') },
    { directory: join(h.project, '..', 'elsewhere') },
  ];
  const made = await Promise.all(
    narrow.map((fields) => call('admin', 'POST', '/rules', { decision: 'allow', tool: 'Bash(make mine)', ...fields })),
  );
  expect(made.map(({ status }) => status)).toEqual(narrow.map(() => 201));
  const { sessionId, status, actions } = await turn('run mine', bash('make mine'));
  expect(status).toBe('waiting_permission');
  await call('approver', 'POST', `/requests/${actions[0].requestId}/answer`, { decision: 'deny' });
  await h.finish(sessionId);
  for (const { json } of made) await call('admin', 'DELETE', `/rules/${json.rule.id}`);
});

test('only people make rules, each within their role', async () => {
  const h = shared();
  const rule = { decision: 'allow', tool: 'Bash', match: 'make ok' };
  const post = async (role: string, body: object): Promise<number> => (await call(role, 'POST', '/rules', body)).status;
  expect(await post('viewer', { ...rule, directory: h.project })).toBe(403);
  expect(await post('caller', { ...rule, directory: h.project })).toBe(403);
  expect(await post('approver', rule)).toBe(403);
  expect(await post('approver', { ...rule, directory: h.home })).toBe(403);
  expect(await post('approver', { ...rule, match: 'make *', directory: h.project })).toBe(400);
  expect(await post('approver', { ...rule, createdBy: 'person', directory: h.project })).toBe(400);
  // Names that only look like those of a tool or a command.
  for (const [tool, match] of [
    ['B\u0430sh', 'make ok'],
    ['Bash ', 'make ok'],
    ['bash', 'make ok'],
    ['Bash', 'make\u00a0ok'],
    ['Bash', 'm\u0430ke ok'],
    ['Bash', 'make ok\u200b'],
    ['mcp__*', undefined],
    ['ExitPlanMode', undefined],
  ])
    expect([tool, match, await post('admin', { ...rule, tool, match })]).toEqual([tool, match, 400]);
  expect((await call('caller', 'GET', '/rules')).status).toBe(403);
  const { json } = await call('admin', 'POST', '/rules', rule);
  for (const role of ['viewer', 'caller', 'approver']) {
    expect((await call(role, 'PATCH', `/rules/${json.rule.id}`, { enabled: false })).status).toBe(403);
    expect((await call(role, 'DELETE', `/rules/${json.rule.id}`)).status).toBe(403);
  }
  expect((await call('admin', 'DELETE', `/rules/${json.rule.id}`)).status).toBe(200);
  const { packs } = (await call('viewer', 'GET', '/rules/packs')).json;
  expect(packs.map(({ name }: Json) => name)).toEqual(['reading', 'git-local']);
  expect((await call('viewer', 'GET', '/rules')).json).toEqual({ rules: [] });
});

test('several rules are made by one call, all of them or none', async () => {
  const h = shared();
  const rule = { decision: 'allow', tool: 'Bash', match: 'make one', directory: h.project };
  const post = (...rules: object[]) => call('approver', 'POST', '/rules/batch', { rules });
  const made = async (): Promise<string[]> =>
    (await call('viewer', 'GET', '/rules')).json.rules.map(({ id }: Json) => id);
  expect((await post(rule, { ...rule, directory: undefined })).status).toBe(403);
  expect((await post(rule, { ...rule, tool: 'bash' })).status).toBe(400);
  expect((await post(rule, { ...rule, expiresAt: '2020-01-01T00:00:00Z' })).status).toBe(400);
  expect(await made()).toEqual([]);
  const { status, json } = await post(rule, { ...rule, match: 'make two' });
  expect([status, json.ids]).toEqual([201, expect.arrayContaining(await made())]);
  expect(json.ids).toHaveLength(2);
  for (const id of json.ids) {
    await eventually(
      async () => (await call('viewer', 'GET', `/audit?kind=server&search=rule+made:+${id}`)).json.entries[0],
      { what: 'each rule is audited' },
    );
    await call('approver', 'DELETE', `/rules/${id}`);
  }
});

test('what Claude Code asks while the hub is away is answered by a rule once, though it asks again', async () => {
  const h = shared();
  const rule = { decision: 'allow', tool: 'Bash', match: 'make away', directory: h.project };
  const made = await call('approver', 'POST', '/rules', rule);
  const asks = gate(bash('make away'));
  h.model.on('ask while nobody is there').reply(asks, text('done'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'ask while nobody is there' });
  await asks.arrived;
  await h.stopHub('SIGKILL');
  asks.release();
  const projects = join(h.configDir, 'projects');
  const transcript = () =>
    readdirSync(projects, { recursive: true, encoding: 'utf8' }).find((file) => file.endsWith(`${sessionId}.jsonl`));
  await eventually(() => readFileSync(join(projects, transcript()!), 'utf8').includes('make away'), {
    what: 'Claude Code has its answer and asks',
  });
  await h.startHub();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'done' });
  expect(await outcomes(sessionId)).toMatchObject([{ decision: 'allow', by: 'rule' }]);
  const { entries } = (await call('viewer', 'GET', `/audit?kind=decision&session=${sessionId}`)).json;
  expect(entries).toMatchObject([{ who: 'rule', outcome: 'allow', target: 'make away' }]);
  await call('approver', 'DELETE', `/rules/${made.json.rule.id}`);
});
