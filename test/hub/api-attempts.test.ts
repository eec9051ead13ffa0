/** Several attempts started, chosen from and thrown away through the API, with and without a person to ask. */

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { applyAnswer, discardAnswer, type TurnAnswer } from '../../src/schema/api.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommandIn } from '../harness/run-command.ts';

interface Api {
  post(path: string, body?: object): Promise<{ status: number; json: Json }>;
  get(path: string): Promise<Json>;
}

interface Attempt {
  readonly id: string;
  readonly path: string;
  readonly branch: string;
}

async function apiFor(h: Harness, role: string): Promise<Api> {
  const create = { args: ['token', 'create', role, '--role', role, '--json'] };
  const { stdout } = await runCommandIn({ project: h.project, env: () => h.environment() }, create);
  const { token } = JSON.parse(stdout);
  const { url } = readHubRecord(join(h.stateDir, 'claude-code-mcp'))!;
  const call = (path: string, body?: object): Promise<Response> =>
    fetch(`${url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
  return {
    get: async (path) => (await call(path)).json(),
    async post(path, body = {}) {
      const answer = await call(path, body);
      return { status: answer.status, json: await answer.json() };
    },
  };
}

it('attempts are chosen from and deleted through the API; under human a person decides, once for all of them', async () => {
  const h = await startHarness({
    git: true,
    hub: { args: ['--approvals', 'human'] },
    settings: { permissions: { allow: ['Bash'] } },
  });
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: h.project, encoding: 'utf8', env: { ...process.env, HOME: h.home } }).trim();
  const [caller, approver, admin] = [
    await apiFor(h, 'caller'),
    await apiFor(h, 'approver'),
    await apiFor(h, 'admin'),
  ] as const;
  const go = join(h.home, 'go');
  const way = (name: string, first = ''): void =>
    void h.model
      .on(`way ${name}`)
      .reply(tool('Bash', { command: `${first}echo ${name} > ${name}.txt`, description: 'work' }), text(`did ${name}`));
  for (const name of ['a', 'b', 'd', 'e']) way(name);
  way('c', `until [ -f ${go} ]; do sleep 0.05; done; `);

  const start = async (api: Api, names: readonly string[]): Promise<Attempt[]> => {
    const attempts = names.map((name) => ({ prompt: `way ${name}` }));
    const { status, json } = await api.post('/sessions', { prompt: 'try', cwd: h.project, attempts });
    expect(status).toBe(201);
    const started = (json as TurnAnswer).attempts ?? [];
    expect(started[0]?.sessionId).toBe(json.session.sessionId);
    return started.map(({ sessionId, workspace }) => ({
      id: sessionId,
      path: workspace?.path ?? 'no path',
      branch: workspace?.branch ?? 'no branch',
    }));
  };
  const atRest = async (id: string): Promise<Json> => {
    let session: Json;
    await eventually(async () => (session = await caller.get(`/sessions/${id}`)).status === 'idle', {
      what: `session ${id} is at rest`,
    });
    return session;
  };
  const allow = async (requestId: string): Promise<void> =>
    expect((await approver.post(`/requests/${requestId}/answer`, { decision: 'allow' })).status).toBe(200);

  // ── asked of a person ──
  const [a, b, c] = (await start(caller, ['a', 'b', 'c'])) as [Attempt, Attempt, Attempt];
  await atRest(a.id);
  await atRest(b.id);
  const apply = await caller.post(`/sessions/${a.id}/apply`, { discardOthers: true });
  expect(apply).toEqual({ status: 202, json: { outcome: 'awaits_person', requestId: expect.any(String) } });
  const { requests } = await approver.get('/requests');
  expect(requests).toMatchObject([
    { requestId: apply.json.requestId, input: { discardOthers: [{ sessionId: b.id }] } },
  ]);
  expect(existsSync(b.path)).toBe(true);
  await allow(apply.json.requestId);
  const { lastAction } = await atRest(a.id);
  expect(lastAction).toMatchObject({ action: 'apply', outcome: 'applied' });
  expect(lastAction.message).toContain(`Attempt ${b.id}: Removed the worktree`);
  expect(lastAction.message).toContain(`Attempt ${c.id} was left: It was at work`);
  expect(existsSync(b.path)).toBe(false);
  expect(existsSync(join(h.project, 'a.txt'))).toBe(true);
  expect(git('show', `${b.branch}:b.txt`)).toBe('b');

  writeFileSync(go, '');
  await atRest(c.id);
  const refused = await caller.post(`/sessions/${c.id}/discard`, { deleteBranch: true });
  expect(refused).toMatchObject({ status: 400, json: { error: { code: 'INVALID_ARGUMENT' } } });
  const discard = await caller.post(`/sessions/${c.id}/discard`, { force: true, deleteBranch: true });
  expect(discard.status).toBe(202);
  expect(git('branch', '--list', c.branch)).not.toBe('');
  await allow(discard.json.requestId);
  expect((await atRest(c.id)).lastAction).toMatchObject({ action: 'discard', outcome: 'discarded' });
  const kept = git('rev-parse', `refs/claude/discarded/${c.id}`);
  expect(git('show', `${kept}:c.txt`)).toBe('c');
  expect(git('branch', '--list', c.branch)).toBe('');
  const isAudited = ({ session, what, outcome, details }: Json): boolean =>
    session === c.id && what === 'branch' && outcome === 'deleted' && details.commit === kept;
  await eventually(async () => (await admin.get('/audit')).entries.some(isAudited), { what: 'it is audited' });

  // ── decided by an administrator, who is a person ──
  const [one, two] = (await start(admin, ['d', 'e'])) as [Attempt, Attempt];
  await eventually(
    async () =>
      (await Promise.all([one, two].map(({ id }) => admin.get(`/sessions/${id}`)))).every((s) => s.status === 'idle'),
    { what: 'both are at rest' },
  );
  const applied = await admin.post(`/sessions/${one.id}/apply`, { discardOthers: true });
  expect(applyAnswer.parse(applied.json)).toMatchObject({
    outcome: 'applied',
    mode: 'merge',
    commit: git('rev-parse', 'HEAD'),
    before: git('rev-parse', 'HEAD^'),
    remains: { branch: one.branch, remove: `POST /api/v1/sessions/${one.id}/discard` },
    others: [{ sessionId: two.id, outcome: 'discarded' }],
  });
  expect(existsSync(two.path)).toBe(false);
  writeFileSync(join(one.path, 'later.txt'), 'later\n');
  const gone = await admin.post(`/sessions/${one.id}/discard`, { force: true, deleteBranch: true });
  expect(discardAnswer.parse(gone.json)).toMatchObject({
    outcome: 'discarded',
    keptBranches: [],
    deletedBranch: one.branch,
    retired: { ref: `refs/claude/discarded/${one.id}`, commit: expect.any(String) },
  });
});
