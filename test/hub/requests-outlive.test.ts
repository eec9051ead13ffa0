/** Requests that outlive Claude Code and the hub, with the real ones. */

import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import { runCommandIn } from '../harness/run-command.ts';

it('a request can be answered after the hub was killed with its keeper, and another after its process was parked', async () => {
  const h = await startHarness({ hub: {} });
  const making = (file: string): Record<string, string> => ({ command: `touch ${file}`, description: 'make a file' });
  const made = (file: string): boolean => existsSync(join(h.project, file));
  h.model.on('make one').reply(tool('Bash', making('one')), text('nobody answered'));
  h.model.on('was allowed').reply(tool('Bash', making('one')), text('made it'));
  h.model.on('make two').reply(tool('Bash', making('two')), text('nobody answered'));
  h.model.on('was refused').reply(text('then not'));

  const { sessionId, actions } = await h.ok('claude_code', { prompt: 'make one', waitMs: 45_000 });
  await h.killHubAndKeeper();
  await h.startHub({ args: ['--park-after-ms', '1000', '--cleanup-interval-ms', '1000'] });
  const [{ requestId }] = actions;
  const poll = await h.ok('claude_code_check', { action: 'poll', sessionId });
  expect(poll).toMatchObject({ status: 'waiting_permission', actions: [{ requestId, input: making('one') }] });
  expect(made('one')).toBe(false);
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow', waitMs: 45_000 };
  const done = await h.ok('claude_code_check', answer);
  expect(done).toMatchObject({ status: 'idle', activity: expect.stringContaining('1 tool (1 Bash), <$0.01') });
  // The call that waited never ran: its repeat did.
  expect(done.result).toMatchObject({ result: 'made it', work: { commandsRun: 1, commandsFailed: 0 } });
  expect(done.result.work).not.toHaveProperty('problems');
  expect(made('one')).toBe(true);
  // The call that was cut off did not run, and its repetition did.
  expect(done.result.work).toMatchObject({ commandsRun: 1, lastCommand: { exitCode: 0 } });
  expect(done.result.work).not.toHaveProperty('problems');

  await h.ok('claude_code_reply', { sessionId, prompt: 'make two' });
  const { requestId: second } = await h.waitForRequest(sessionId);
  await eventually(async () => (await h.processes()).every(({ command }) => !command.includes('claude-agent-sdk')), {
    what: 'the process is parked',
  });
  const { url } = readHubRecord(join(h.stateDir, 'claude-code-mcp'))!;
  const create = { args: ['token', 'create', 'ann', '--role', 'approver', '--json'] };
  const created = await runCommandIn({ project: h.project, env: () => h.environment() }, create);
  const { token } = JSON.parse(created.stdout);
  const call = (path: string, body?: object): Promise<Response> =>
    fetch(`${url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
  const inbox = await (await call('/requests')).json();
  expect(inbox).toMatchObject({ requests: [{ requestId: second, sessionId, toolName: 'Bash', input: making('two') }] });
  const denial = { decision: 'deny', message: 'no files, please' };
  expect((await call(`/requests/${second}/answer`, denial)).status).toBe(200);
  const late = await call(`/requests/${second}/answer`, { decision: 'allow' });
  expect(late.status).toBe(409);
  expect(await late.json()).toMatchObject({ outcome: { decision: 'deny', message: 'no files, please' } });
  expect((await call('/requests/never-was/answer', denial)).status).toBe(404);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'then not' } });
  expect(made('two')).toBe(false);
});

it('what was allowed does not follow a directory that was replaced meanwhile', async () => {
  const h = await startHarness({ hub: { args: ['--park-after-ms', '1000', '--cleanup-interval-ms', '1000'] } });
  const project = join(h.home, 'moved');
  const elsewhere = join(h.home, 'elsewhere');
  for (const directory of [project, elsewhere]) await mkdir(directory);
  const call = tool('Bash', { command: 'touch made.txt', description: 'make a file' });
  const write = tool('Write', { file_path: join(project, 'written.txt'), content: 'x' });
  h.model.on('make a file').reply(call, text('nobody answered'));
  const repeated = gate(call);
  h.model.on('was allowed').reply(repeated, write, text('then not'));

  const started = await h.ok('claude_code', { prompt: 'make a file', cwd: project, waitMs: 45_000 });
  const { sessionId } = started;
  const [{ requestId }] = started.actions;
  await eventually(async () => (await h.processes()).every(({ command }) => !command.includes('claude-agent-sdk')), {
    what: 'the process is parked',
  });
  await h.ok('claude_code_check', { action: 'respond_permission', sessionId, requestId, decision: 'allow' });
  await repeated.arrived;
  await rename(project, join(h.home, 'aside'));
  await symlink(elsewhere, project);
  repeated.release();

  const again = await h.waitForRequest(sessionId);
  expect(again).toMatchObject({ toolName: 'Bash', input: { command: 'touch made.txt' } });
  expect(again.requestId).not.toBe(requestId);
  await h.deny(sessionId);
  expect(await h.waitForRequest(sessionId)).toMatchObject({ toolName: 'Write' });
  await h.deny(sessionId);
  await h.waitUntilRest(sessionId);
  expect(await readdir(elsewhere)).toEqual([]);
});
