import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { endlessCommand, runningProcesses, startRunningCommand } from '../harness/running-command.ts';
import { killClaude } from './claude-process.ts';

const DISK_RESUME = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: 'a secret of this test' };

async function ask(h: Harness, sessionId: string, prompt: string, more: object = {}): Promise<Json> {
  return h.ok('claude_code_reply', { sessionId, prompt, ...more });
}

const shared = shareHarness();

describe('what has finished is kept', () => {
  test('a result that nobody waited for can be read any number of times', async () => {
    const h = shared();
    h.model.on('in your own time').reply(text('finished long ago'));
    const sessionId = await h.converse('in your own time');
    await eventually(
      async () => {
        const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
        return sessions[0].status === 'idle';
      },
      { what: 'the session is at rest' },
    );
    for (const action of ['poll', 'wait', 'poll']) {
      const { result } = await h.ok('claude_code_check', { action, sessionId });
      expect(result).toMatchObject({ result: 'finished long ago', isError: false });
    }
  });

  test('an abandoned wait loses nothing: result, events and open requests are still there', async () => {
    const h = shared();
    h.model.on('ask, then answer').reply(tool('Bash', { command: 'touch x', description: 'x' }), text('all done'));
    const sessionId = await h.converse('ask, then answer');
    const controller = new AbortController();
    const abandonedWait = h.call('claude_code_check', { action: 'wait', sessionId }, { signal: controller.signal });
    controller.abort();
    await abandonedWait.catch(() => undefined);
    await h.allow(sessionId);
    await h.waitUntilRest(sessionId);
    const { events, result } = await h.ok('claude_code_check', { action: 'poll', sessionId });
    expect(result).toMatchObject({ result: 'all done' });
    const kinds = events.map(({ type }: Json) => type);
    expect(kinds).toEqual(expect.arrayContaining(['permission_request', 'permission_result', 'output']));
  });

  // For a server that shut down cleanly, see `disk-resume`.
  test('after SIGKILL of the server, the next one resumes the session from disk', async () => {
    const h = await startHarness({ env: DISK_RESUME });
    h.model.on('remember the word tulip').reply(text('I will'));
    const first = await h.ok('claude_code', { prompt: 'remember the word tulip', cwd: h.project });
    const { sessionId, resumeToken } = first;
    await h.waitUntilRest(sessionId);
    h.server.kill('SIGKILL');
    await h.restartServer();
    await h.fails('claude_code_check', { action: 'poll', sessionId }, 'SESSION_NOT_FOUND');
    const { sessions } = await h.ok('claude_code_session', { action: 'list', scope: 'disk' });
    expect(sessions.map((session: Json) => session.sessionId)).toContain(sessionId);
    const again = h.model.on('which word').reply(text('tulip'));
    await eventually(
      async () => !(await h.call('claude_code_reply', { sessionId, prompt: 'which word', resumeToken })).isError,
      { what: 'the session is resumed, once the old process has gone', within: 15_000, every: 200 },
    );
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'tulip' } });
    expect(h.model.requestsFor(again)[0]?.userTexts.join('\n')).toContain('remember the word tulip');
  });
});

describe('messages in flight are delivered or reported', () => {
  const parking = shareHarness({
    env: { CLAUDE_CODE_MCP_PARK_AFTER_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '10' },
  });

  test('a reply to a parked session is answered, and one whose process fails to start does not block the next', async () => {
    const h = parking();
    const waitUntilParked = (): Promise<unknown> =>
      eventually(async () => (await h.processes()).length === 1, { what: 'the session is parked' });
    h.model.on(/number \d/).always(({ lastUserText }) => text(`answer to ${lastUserText}`));
    const sessionId = await h.begin('number 0');
    await h.waitUntilRest(sessionId);
    // Parked by now, or just about to be.
    await ask(h, sessionId, 'number 1');
    const { result } = await h.waitUntilRest(sessionId);
    expect(result).toMatchObject({ result: 'answer to number 1', isError: false });
    await waitUntilParked();
    await h.fails('claude_code_reply', { sessionId, prompt: 'number 2', sessionInitTimeoutMs: 1 }, 'TIMEOUT');
    await ask(h, sessionId, 'number 3', { sessionInitTimeoutMs: 15_000 });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({
      status: 'idle',
      result: { result: 'answer to number 3' },
    });
  });

  test('a queued message is answered or reported as undelivered when the turn is interrupted, and reported when Claude Code is killed', async () => {
    const h = shared();
    const { sessionId } = await startRunningCommand(h);
    const next = h.model.on('do not lose me').always(text('not lost'));
    await ask(h, sessionId, 'do not lose me', { whenBusy: 'queue' });
    await h.ok('claude_code_session', { action: 'interrupt', sessionId });
    const interrupted = await h.waitFor(
      sessionId,
      (state) => state.result && /not lost|do not lose me/.test(state.result.result),
      { what: 'the message was answered, or reported as not delivered' },
    );
    if (interrupted.result.result === 'not lost') expect(h.model.requestsFor(next)).toHaveLength(1);
    await h.waitUntilRest(sessionId);

    h.model.on('run it again').reply(endlessCommand('again'));
    await ask(h, sessionId, 'run it again');
    const { cli } = await runningProcesses(h, sessionId, 'again');
    await ask(h, sessionId, 'nor me', { whenBusy: 'queue' });
    process.kill(cli.pid, 'SIGKILL');
    const { status, result } = await h.waitUntilRest(sessionId);
    expect(status).toBe('error');
    expect(result.result).toContain('Not delivered, send again: "nor me"');
  });

  test('several messages queued at once are all answered before the session is idle', async () => {
    const h = shared();
    const held = gate(text('the first answer'));
    const script = h.model.on('begin').reply(held);
    const more = h.model.on(/extra \d/).always(text('the extras are done'));
    const sessionId = await h.converse('begin');
    await held.arrived;
    await Promise.all([1, 2, 3].map((count) => ask(h, sessionId, `extra ${count}`, { whenBusy: 'queue' })));
    held.release();
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'the extras are done' } });
    const seen = [...h.model.requestsFor(script), ...h.model.requestsFor(more)].at(-1)?.userTexts.join('\n') ?? '';
    for (const count of [1, 2, 3]) expect(seen.split(`extra ${count}`)).toHaveLength(2);
  });
});

/** A session whose process was killed before it had an answer to its first prompt. */
async function killedAtFirstRequest(h: Harness): Promise<string> {
  const first = gate(text('too late'));
  h.model.on('the first words').reply(first);
  const { sessionId } = await h.ok('claude_code', { prompt: 'the first words', cwd: h.project });
  await first.arrived;
  await killClaude(h, sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'error', result: { isError: true } });
  return sessionId;
}

async function expectReplyAccepted(h: Harness, sessionId: string): Promise<void> {
  const next = h.model.on('the next words').reply('here again');
  await h.ok('claude_code_reply', { sessionId, prompt: 'the next words' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'here again' } });
  expect(h.model.requestsFor(next)[0]?.userTexts.join('\n')).toContain('the first words');
}

test('a session killed at its first model request accepts a reply, whether or not its transcript was written', async () => {
  const h = shared();
  const sessionId = await killedAtFirstRequest(h);
  await expectReplyAccepted(h, sessionId);
});

test('a session killed while it began its transcript accepts a reply', async () => {
  const h = shared();
  const sessionId = await killedAtFirstRequest(h);
  // What Claude Code may have written by then: a file without a complete message.
  const projects = join(h.configDir, 'projects');
  const [project] = readdirSync(projects);
  const begun = `${JSON.stringify({ type: 'queue-operation', operation: 'enqueue', sessionId })}\n{"type":"user","mess`;
  writeFileSync(join(projects, project!, `${sessionId}.jsonl`), begun);
  await expectReplyAccepted(h, sessionId);
});
