import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { MarkedProcess } from '../harness/marked-processes.ts';
import type { Harness } from '../harness/open-harness.ts';
import { startRunningCommand } from '../harness/running-command.ts';
import { FAKE_CLAUDE } from './stand-in.ts';

const programOf = (behaviour: string): string => `claude-that-is-${behaviour}.mjs`;

/** Arguments of a session with a stand-in for Claude Code. The name of its program identifies its processes. */
function fake(h: Harness, behaviour: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const program = join(h.home, programOf(behaviour));
  if (!existsSync(program)) symlinkSync(FAKE_CLAUDE, program);
  return {
    prompt: 'hello',
    cwd: h.project,
    advanced: { pathToClaudeCodeExecutable: program, env: { FAKE_CLAUDE: behaviour }, ...more },
  };
}

/** No process of this stand-in is left. */
async function expectGone(h: Harness, behaviour: string): Promise<void> {
  const matches = ({ command }: MarkedProcess): boolean => command.includes(programOf(behaviour));
  await eventually(async () => !(await h.processes()).some(matches), { what: 'its process is gone', within: 20_000 });
}

/** A session of the real Claude Code, next to those that misbehave. */
function healthySession(harness: () => Harness): { expectHealthy(): Promise<void> } {
  let sessionId = '';
  const expectAnswer = async (): Promise<void> => {
    const state = await harness().waitUntilRest(sessionId);
    expect(state).toMatchObject({ status: 'idle', result: { result: 'quite well' } });
  };
  beforeAll(async () => {
    harness().model.on('are you well').always(text('quite well'));
    ({ sessionId } = await harness().ok('claude_code', { prompt: 'are you well', cwd: harness().project }));
    await expectAnswer();
  }, 60_000);
  return {
    /** The server is up, and the session still works. */
    async expectHealthy() {
      await harness().ok('claude_code_reply', { sessionId, prompt: 'are you well' });
      await expectAnswer();
    },
  };
}

async function poll(h: Harness, sessionId: string, args: Record<string, unknown> = {}): Promise<Json> {
  return h.ok('claude_code_check', { action: 'poll', sessionId, ...args });
}

const harness = shareHarness({ args: ['--max-sessions', '40'] });
const { expectHealthy } = healthySession(harness);

describe('a misbehaving Claude Code affects nobody else', () => {
  // Most of the time is spent waiting for timeouts.
  describe.concurrent('when', () => {
    test('it is a stand-in without a fault', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'ordinary'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({
        status: 'idle',
        result: { result: 'answer to: hello' },
      });
      await h.ok('claude_code_reply', { sessionId, prompt: 'again' });
      expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'answer to: again' } });
    });

    test('it is another version that reports neither its state nor the delivery of messages', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'other-version'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({
        status: 'idle',
        result: { result: 'answer to: hello' },
      });
      await h.ok('claude_code_reply', { sessionId, prompt: 'once more' });
      expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'answer to: once more' } });
      const { events } = await poll(h, sessionId, { responseMode: 'full' });
      expect(events.map(({ data }: Json) => data.subtype ?? data.type)).toEqual(
        expect.arrayContaining(['of_next_year', 'invented']),
      );
    });

    test('it sends 100,000 events', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'flood'));
      // The server answers while it is flooded.
      await h.ok('claude_code_session', { action: 'list' });
      const done = await h.waitUntilRest(sessionId, { within: 25_000 });
      expect(done).toMatchObject({ status: 'idle', result: { result: 'answer to: hello' } });
      const { events, cursorResetTo, nextCursor } = await poll(h, sessionId, {
        cursor: 1,
        responseMode: 'full',
      });
      expect(events.length).toBeLessThanOrEqual(2_000);
      expect(cursorResetTo).toBe(events[0].id);
      expect(nextCursor).toBeGreaterThan(100_000);
    });

    test('it sends one event of 20 MB', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'huge'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({
        status: 'idle',
        result: { result: 'answer to: hello' },
      });
      const { nextCursor } = await poll(h, sessionId);
      expect((await poll(h, sessionId, { cursor: nextCursor })).events).toEqual([]);
      await poll(h, sessionId, { responseMode: 'full' });
    });

    test('it mixes garbage into its messages', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'garbage'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({
        status: 'idle',
        result: { result: 'answer to: hello' },
      });
      for (const responseMode of ['minimal', 'full']) await poll(h, sessionId, { responseMode });
    });

    test('its result lacks the usual fields', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'garbage-result'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'error', result: { isError: true } });
    });

    test('it sends nothing but garbage', async () => {
      const h = harness();
      const message = await h.fails('claude_code', fake(h, 'garbage-only', { sessionInitTimeoutMs: 1_500 }), 'TIMEOUT');
      expect(message).toContain('1500 ms');
      await expectGone(h, 'garbage-only');
    });

    test('it hangs on start', async () => {
      const h = harness();
      const args = fake(h, 'hangs-at-start', { sessionInitTimeoutMs: 1_000 });
      expect(await h.fails('claude_code', args, 'TIMEOUT')).toContain('1000 ms');
      await expectGone(h, 'hangs-at-start');
    });

    test('it exits at once', async () => {
      const h = harness();
      const message = await h.fails('claude_code', fake(h, 'exits-at-once'), 'INTERNAL');
      expect(message).toMatch(/did not start.*this licence has expired/s);
    });

    test('it does not exist, or cannot be run', async () => {
      const h = harness();
      for (const pathToClaudeCodeExecutable of ['/nowhere/claude', h.project, '/etc/hostname']) {
        const args = { prompt: 'hello', cwd: h.project, advanced: { pathToClaudeCodeExecutable } };
        const { isError, data } = await h.call('claude_code', args);
        expect({ isError, ...data }).toMatchObject({ isError: true, sessionId: '', status: 'error' });
      }
    });

    test('it ignores everything: interrupt and cancel still end it', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'deaf'));
      const { sessions } = await h.ok('claude_code_session', { action: 'interrupt', sessionId });
      expect(sessions[0].status).toBe('idle');
      await expectGone(h, 'deaf');
      const another = await h.ok('claude_code', fake(h, 'deaf'));
      await h.ok('claude_code_session', { action: 'cancel', sessionId: another.sessionId });
      await expectGone(h, 'deaf');
    });

    test('it ignores everything: switching the model is an error, not an endless wait', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'hangs-at-end'));
      await h.waitUntilRest(sessionId);
      const args = { sessionId, prompt: 'with another model', model: 'other' };
      expect(await h.fails('claude_code_reply', args, 'TIMEOUT')).toContain('did not respond');
    });

    test('it closes its output before it exits', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'closes-its-output'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'error' });
      await expectGone(h, 'closes-its-output');
    });

    test('it dies while idle: nothing is lost, and the next reply starts it again', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'answers-and-dies'));
      expect(await h.waitUntilRest(sessionId)).toMatchObject({
        status: 'idle',
        result: { result: 'answer to: hello' },
      });
      await expectGone(h, 'answers-and-dies');
      await h.ok('claude_code_reply', { sessionId, prompt: 'again' });
      expect(await h.waitUntilRest(sessionId)).toMatchObject({
        status: 'idle',
        result: { result: 'answer to: again' },
      });
    });

    test('it dies with an open request, which is settled', async () => {
      const h = harness();
      const { sessionId } = await h.ok('claude_code', fake(h, 'asks-and-dies'));
      const rest = await h.waitUntilRest(sessionId);
      expect(rest).toMatchObject({ status: 'error' });
      expect(rest.result.result).toContain('exit code 7');
      expect(rest.actions).toBeUndefined();
    });
  });

  test('a session of the real Claude Code keeps working', () => expectHealthy());
});

describe('open requests when a session ends', () => {
  // For the real Claude Code, see `cancel`.
  test('cancel at the same time as an answer settles a request once', async () => {
    const h = harness();
    const { sessionId } = await h.ok('claude_code', fake(h, 'asks'));
    const { requestId } = await h.waitForRequest(sessionId);
    const answer = h.call('claude_code_check', {
      action: 'respond_permission',
      sessionId,
      requestId,
      decision: 'deny',
    });
    await h.ok('claude_code_session', { action: 'cancel', sessionId });
    await answer;
    const { events, status } = await poll(h, sessionId);
    expect(status).toBe('cancelled');
    expect(events.filter(({ type }: Json) => type === 'permission_result')).toHaveLength(1);
    await expectHealthy();
  });

  test('shutdown with open requests is quiet, and also ends a process that ignores it', async () => {
    const h = await startHarness({ args: ['--log-level', 'warn'] });
    h.model.on('ask me').reply(tool('Bash', { command: 'touch a.txt', description: 'a' }));
    const { sessionId } = await h.ok('claude_code', { prompt: 'ask me', cwd: h.project });
    const stubborn = await h.ok('claude_code', fake(h, 'hangs-at-end'));
    await h.waitUntilRest(stubborn.sessionId);
    await h.waitForRequest(sessionId);
    h.server.closeStdin();
    await eventually(async () => (await h.processes()).length === 0, { what: 'all processes are gone', within: 5_000 });
    expect(await h.server.exited).toEqual({ code: 0, signal: null });
    expect(h.server.stderr()).toBe('');
  });
});

async function startAtWork(h: Harness): Promise<{ sessionId: string; pid: number }> {
  const { sessionId, cli } = await startRunningCommand(h);
  return { sessionId, pid: cli.pid };
}

async function startStandIn(h: Harness): Promise<{ sessionId: string; pid: number }> {
  const { sessionId } = await h.ok('claude_code', fake(h, 'asks'));
  await h.waitForRequest(sessionId);
  const { pid } = (await h.processes()).find(({ command }) => command.includes(sessionId))!;
  return { sessionId, pid };
}

describe('control messages to a process that is dead or dying', () => {
  test.for(['interrupt', 'cancel'])('%s right after a crash succeeds', async (action) => {
    const h = harness();
    const { sessionId, pid } = action === 'interrupt' ? await startAtWork(h) : await startStandIn(h);
    process.kill(pid, 'SIGKILL');
    await h.ok('claude_code_session', { action, sessionId });
    await h.waitUntilRest(sessionId);
    await expectHealthy();
  });

  test('a reply right after the process of an idle session crashed is answered or reported as undelivered', async () => {
    const h = harness();
    h.model.on('first').reply(text('one'));
    h.model.on('second').reply(text('two'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'first', cwd: h.project });
    await h.waitUntilRest(sessionId);
    const cli = (await h.processes()).find(({ command }) => command.includes(sessionId));
    process.kill(cli!.pid, 'SIGKILL');
    await h.ok('claude_code_reply', { sessionId, prompt: 'second', permissionMode: 'plan' });
    const { result } = await h.waitUntilRest(sessionId);
    if (result.isError) {
      // The server did not know of the crash yet.
      expect(result.result).toContain('Not delivered, send again: "second"');
      await h.ok('claude_code_reply', { sessionId, prompt: 'second' });
    }
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'two' } });
  });

  test('interrupts, cancels and a reply at the same time leave the session cancelled', async () => {
    const h = harness();
    const held = gate(text('late'));
    h.model.on('hold on').reply(held);
    const { sessionId } = await h.ok('claude_code', { prompt: 'hold on', cwd: h.project });
    await held.arrived;
    const session = (action: string): Promise<unknown> => h.call('claude_code_session', { action, sessionId });
    await Promise.all([
      session('interrupt'),
      session('interrupt'),
      h.call('claude_code_reply', { sessionId, prompt: 'queued', whenBusy: 'queue', permissionMode: 'plan' }),
      session('cancel'),
      session('interrupt'),
      session('cancel'),
    ]);
    expect(await poll(h, sessionId)).toMatchObject({ status: 'cancelled' });
    await h.fails('claude_code_reply', { sessionId, prompt: 'more' }, 'CANCELLED');
    await eventually(async () => (await h.processes()).every(({ command }) => !command.includes(sessionId)), {
      what: 'its process is gone',
      within: 6_000,
    });
    await expectHealthy();
  });
});
