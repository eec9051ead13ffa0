/** Requests that outlive Claude Code and the hub itself, with the real ones. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommandIn } from '../harness/run-command.ts';

const COMMAND = { command: 'touch made.txt', description: 'make a file' };

/** A session that waits for permission to make a file. */
async function waitingSession(h: Harness): Promise<{ sessionId: string; requestId: string }> {
  // When the hub is killed, Claude Code takes its closed input for a refusal until the watchdog ends it.
  h.model.on('go').reply(tool('Bash', COMMAND), text('nobody answered'));
  h.model.on('was allowed').reply(tool('Bash', COMMAND), text('made it'));
  h.model.on('was refused').reply(text('then not'));
  const { sessionId, actions } = await h.ok('claude_code', { prompt: 'go', waitMs: 45_000 });
  return { sessionId, requestId: actions[0].requestId };
}

const made = (h: Harness): boolean => existsSync(join(h.project, 'made.txt'));

describe('a request', () => {
  it('is answered after the hub was killed and started again: the call is made again and runs', async () => {
    const h = await startHarness({ hub: {} });
    const { sessionId, requestId } = await waitingSession(h);
    await h.stopHub('SIGKILL');
    await h.startHub();
    await h.startServer();
    const poll = await h.ok('claude_code_check', { action: 'poll', sessionId });
    expect(poll).toMatchObject({ status: 'waiting_permission', actions: [{ requestId, input: COMMAND }] });
    expect(made(h)).toBe(false);
    const done = await h.ok('claude_code_check', {
      action: 'respond_permission',
      sessionId,
      requestId,
      decision: 'allow',
      waitMs: 45_000,
    });
    expect(done).toMatchObject({ status: 'idle', result: { result: 'made it' } });
    expect(made(h)).toBe(true);
  });

  it('is answered by the API after its process was given back, and denied in words', async () => {
    const h = await startHarness({ hub: { args: ['--park-after-ms', '1000', '--cleanup-interval-ms', '1000'] } });
    const { sessionId, requestId } = await waitingSession(h);
    await eventually(async () => (await h.processes()).every(({ command }) => !command.includes('claude-agent-sdk')), {
      what: 'the process was given back',
    });
    const { url } = JSON.parse(readFileSync(join(h.stateDir, 'claude-code-mcp', 'hub.json'), 'utf8'));
    const create = { args: ['token', 'create', 'ann', '--role', 'approver', '--json'] };
    const created = await runCommandIn({ project: h.project, env: () => h.environment() }, create);
    const { token } = JSON.parse(created.stdout);
    const call = (path: string, body?: object): Promise<Response> =>
      fetch(`${url}/api/v1${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      });
    const inbox = await (await call('/requests')).json();
    expect(inbox).toMatchObject({ requests: [{ requestId, sessionId, toolName: 'Bash', input: COMMAND }] });
    const denial = { decision: 'deny', message: 'no files, please' };
    expect((await call(`/requests/${requestId}/answer`, denial)).status).toBe(200);
    const late = await call(`/requests/${requestId}/answer`, { decision: 'allow' });
    expect(late.status).toBe(409);
    expect(await late.json()).toMatchObject({ outcome: { decision: 'deny', message: 'no files, please' } });
    expect((await call('/requests/never-was/answer', denial)).status).toBe(404);
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'then not' } });
    expect(made(h)).toBe(false);
  });
});
