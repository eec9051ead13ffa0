/** Actions of the server's own that a person must allow, across killed hubs and unloaded sessions, with the real ones. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import { runCommandIn } from '../harness/run-command.ts';

const HUMAN = ['--approvals', 'human'];
/** Sessions at rest are unloaded at once. */
const UNLOADING = ['--session-ttl-ms', '1', '--cleanup-interval-ms', '20'];

it('apply and discard wait for the person without holding the call, even if the hub is killed, and happen once', async () => {
  const h = await startHarness({
    git: true,
    hub: { args: HUMAN },
    settings: { permissions: { allow: ['Bash'] } },
  });
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: h.project, encoding: 'utf8', env: { ...process.env, HOME: h.home } }).trim();
  h.model.on('begin').reply(tool('Bash', { command: 'echo x > b.txt', description: 'work' }), text('begun'));
  const advanced = { workspace: { type: 'worktree' } };
  const { sessionId, workspace } = await h.ok('claude_code', { prompt: 'begin', waitMs: 45_000, advanced });
  const manage = (action: string, args: object = {}): Promise<Json> =>
    h.ok('claude_code_session', { action, sessionId, ...args });
  const create = { args: ['token', 'create', 'ann', '--role', 'approver', '--json'] };
  const created = await runCommandIn({ project: h.project, env: () => h.environment() }, create);
  const { token } = JSON.parse(created.stdout);
  const call = async (path: string, body?: object): Promise<{ status: number; json: Json }> => {
    const { url } = readHubRecord(join(h.stateDir, 'claude-code-mcp'))!;
    const answer = await fetch(`${url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return { status: answer.status, json: await answer.json() };
  };
  const restart = async (...args: string[]): Promise<void> => {
    await h.stopHub('SIGKILL');
    await h.startHub({ args: [...HUMAN, ...args] });
  };

  const asked = await manage('apply', { mode: 'squash', message: 'take it' });
  expect(asked).toMatchObject({ status: 'waiting_permission', requestId: expect.any(String) });
  const { requestId } = asked;
  // Claude does nothing meanwhile.
  const activity = async (): Promise<string> => (await call(`/sessions/${sessionId}`)).json.activity;
  expect(await activity()).toMatch(/, waiting for permission: Apply/);
  await restart();
  expect(await activity()).toMatch(/, waiting for permission: Apply/);
  writeFileSync(join(workspace.path, 'later.txt'), 'later\n');
  const poll = await h.ok('claude_code_check', { action: 'poll', sessionId });
  const input = { mode: 'squash', message: 'take it', base: git('branch', '--show-current') };
  expect(poll).toMatchObject({
    status: 'waiting_permission',
    actions: [{ requestId, toolName: 'Apply', input, askedPerson: true }],
  });
  expect(poll.actions[0].summary).toMatch(/^The caller wants to apply the work of a session/);
  await h.fails('claude_code_reply', { sessionId, prompt: 'never' }, 'SESSION_BUSY');
  const inbox = await call('/requests');
  expect(inbox.json).toMatchObject({ requests: [{ requestId, toolName: 'Apply', asShown: true, input }] });
  const answer = (body: object, id = requestId): Promise<{ status: number; json: Json }> =>
    call(`/requests/${id}/answer`, body);
  for (const more of [{ updatedInput: { mode: 'merge' } }, { always: true }])
    expect(await answer({ decision: 'allow', ...more })).toMatchObject({
      status: 400,
      json: { error: { code: 'INVALID_ARGUMENT' } },
    });
  expect(git('rev-list', '--count', 'HEAD')).toBe('1');
  const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
  expect((await answer({ decision: 'allow' })).status).toBe(200);
  const done = await waiting;
  expect(done).toMatchObject({ status: 'idle', lastAction: { action: 'apply', requestId, outcome: 'applied' } });
  expect(done.lastAction.message).toContain('Later work stays in the worktree and was not applied: later.txt.');
  expect(git('show', '--name-only', '--format=%s')).toBe('take it\n\nb.txt');
  expect(git('rev-list', '--count', 'HEAD')).toBe('2');
  expect((await answer({ decision: 'allow' })).status).toBe(409);

  // After another kill it is known how it went, and nothing happens again; what had not been audited is.
  const auditLog = join(h.stateDir, 'claude-code-mcp', 'audit.jsonl');
  const entries = (): string[] => readFileSync(auditLog, 'utf8').split('\n');
  const isDecision = (line: string): boolean => line.includes(requestId) && line.includes('"outcome":"allow"');
  await eventually(() => entries().some((line) => line.includes('"outcome":"applied"')), { what: 'all is audited' });
  writeFileSync(
    auditLog,
    entries()
      .filter((line) => !isDecision(line))
      .join('\n'),
  );
  await restart(...UNLOADING);
  const [audited] = await eventually(
    () => {
      const found = entries().filter(isDecision);
      return found.length > 0 && found;
    },
    { what: 'the decision is audited' },
  );
  expect(JSON.parse(audited!)).toMatchObject({
    kind: 'decision',
    name: 'ann',
    details: { decidedAt: expect.any(String) },
  });
  expect((await call(`/sessions/${sessionId}`)).json).toMatchObject({ status: 'idle', lastAction: done.lastAction });
  expect(git('rev-list', '--count', 'HEAD')).toBe('2');

  // Of a session that the hub has to load first.
  const discard = await manage('discard', { force: true });
  expect(discard).toMatchObject({ status: 'waiting_permission', requestId: expect.any(String) });
  const discarding = h.ok('claude_code_check', { action: 'wait', sessionId });
  expect((await answer({ decision: 'allow' }, discard.requestId)).status).toBe(200);
  expect(await discarding).toMatchObject({
    status: 'idle',
    lastAction: { action: 'discard', requestId: discard.requestId, outcome: 'discarded' },
  });
  expect(existsSync(workspace.path)).toBe(false);
  expect(git('show', `${workspace.branch}:later.txt`)).toBe('later');
  const reply = { sessionId, prompt: 'never' };
  expect(await h.fails('claude_code_reply', reply, 'INVALID_ARGUMENT')).toContain('Start a new session');
});
