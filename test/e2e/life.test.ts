import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { claudePid, killClaude } from './claude-process.ts';
import { runningCommands, startEndless } from './endless-command.ts';
import { auditedDecisions } from './forms-support.ts';
import { verifies } from './requirements.ts';
import { standIn, standInEnv } from './stand-in.ts';
import { check, pollAll } from './steps.ts';

const soon = { CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };

/** Also works for a stand-in, which does not register itself as Claude Code does. */
const hasProcess = async (h: Harness, sessionId: string): Promise<boolean> =>
  (await h.processes()).some(({ command }) => command.includes(sessionId));

const waitUntilGone = (h: Harness, sessionId: string): Promise<unknown> =>
  eventually(async () => !(await hasProcess(h, sessionId)), { what: 'its process is gone' });

const waitUntilParked = (h: Harness, sessionId: string): Promise<unknown> =>
  eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the session is parked' });

verifies(
  ['life.park-background', 'life.background-wakes', 'check.background-tasks', 'life.not-persistent'],
  async (variant) => {
    // Long enough for Claude Code to wake up after its background command has ended.
    const h = await variant.start({ env: { ...soon, CLAUDE_CODE_MCP_PARK_AFTER_MS: '1500' } });
    const wake = gate(text('It ended.'));
    const { sessionId, end } = await startBackground(h, wake);
    const advanced = { ...standIn('ordinary').advanced, persistSession: false };
    const unpersisted = await h.ok('claude_code', { prompt: 'keep nothing', waitMs: 40_000, advanced });
    // That a third session is parked shows that parking is on.
    const other = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000, ...standIn('ordinary') });
    await waitUntilGone(h, other.sessionId);
    for (const kept of [sessionId, unpersisted.sessionId]) expect(await hasProcess(h, kept)).toBe(true);
    expect(await check(h, { action: 'poll', sessionId })).toMatchObject({
      status: 'idle',
      backgroundTasks: 1,
      result: { result: 'It runs.' },
    });

    end();
    await wake.arrived;
    expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined });
    const waiting = check(h, { action: 'wait', sessionId });
    wake.release();
    const done = await waiting;
    expect(done).toMatchObject({
      status: 'idle',
      result: { result: 'It ended.', numTurns: 1, sessionTotalTurns: 3 },
    });
    expect(done).not.toHaveProperty('backgroundTasks');

    const reply = { sessionId: unpersisted.sessionId, prompt: 'still there' };
    expect(await h.ok('claude_code_reply', { ...reply, waitMs: 40_000 })).toMatchObject({
      result: { result: 'answer to: still there' },
    });
    await h.fails('claude_code_reply', { ...reply, forkSession: true }, 'INVALID_ARGUMENT');
  },
);

/** A session at rest whose background command runs until `end` is called; then Claude says `afterwards`. */
async function startBackground(h: Harness, afterwards: ReplyLike): Promise<{ sessionId: string; end: () => void }> {
  const command = 'until [ -f go ]; do sleep 0.1; done; echo woken';
  h.model
    .on('start it')
    .reply(tool('Bash', { command, description: 'wait', run_in_background: true }), text('It runs.'));
  h.model.on(/<task-notification>/).reply(afterwards);
  const sessionId = await h.begin('start it', { allowedTools: ['Bash'] });
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'It runs.' });
  return { sessionId, end: () => writeFileSync(join(h.project, 'go'), '') };
}

/** Whether Claude Code has sent a result, final or not. */
const hasResult = async (h: Harness, sessionId: string): Promise<boolean> =>
  (await pollAll(h, sessionId, { includeTerminalEvents: true })).some(({ type }) => type === 'result');

verifies('life.background-agent', async (variant) => {
  const h = await variant.share();
  const before = h.model.chargedUsd();
  const agentTool = gate(tool('Bash', { command: 'touch by-agent.txt' }));
  h.model
    .on('delegate this')
    .reply(
      tool('Agent', { description: 'an errand', prompt: 'run the errand', subagent_type: 'general-purpose' }),
      text('The agent works.'),
      text('The agent is back.'),
    );
  h.model.on(/^run the errand/).reply(agentTool, text('errand run'));
  const sessionId = await h.begin('delegate this');
  await agentTool.arrived;
  await eventually(() => hasResult(h, sessionId), { what: 'there is a first result' });
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined });

  agentTool.release();
  expect(await h.nextRequest(sessionId)).toMatchObject({ input: { command: 'touch by-agent.txt' } });
  await h.allow(sessionId);
  const done = await h.finish(sessionId);
  expect(done).toMatchObject({ status: 'rest', answer: 'The agent is back.' });
  expect(existsSync(join(h.project, 'by-agent.txt'))).toBe(true);
  expect(done.costUsd).toBeCloseTo(h.model.chargedUsd() - before, 5);
  expect(done.turns).toBeGreaterThanOrEqual(3);
});

/** How each toolset reports that the server stopped a session. */
const STOPPED: Readonly<Record<Toolset, object>> = {
  compact: {
    status: 'idle',
    cancelledSource: 'cleanup',
    cancelledReason: expect.any(String),
    cancelledAt: expect.any(String),
  },
  explicit: { status: 'interrupted', error: expect.stringContaining('longer than 1000 ms') },
};

const runningAtMost = (ms: number): Record<string, string> => ({
  ...soon,
  CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS: String(ms),
  CLAUDE_CODE_MCP_SESSION_TTL_MS: '60000',
});

// For the real Claude Code and its commands, see below.
verifies('life.running-max', { toolsets: ['explicit'] }, async (variant) => {
  const h = await variant.start({ env: { ...runningAtMost(1000), ...standInEnv('deaf') } });
  const sessionId = await h.begin('work forever');
  expect(await h.waitUntilRest(sessionId)).toMatchObject(STOPPED.explicit);
  await waitUntilGone(h, sessionId);

  // A restart may take longer than the limit set here: it is enough that the message is accepted.
  expect(await h.say(sessionId, 'go on')).toMatchObject({ sessionId, status: 'running' });
});

verifies('life.running-max', { toolsets: ['compact'], when: 'and its commands are ended' }, async (variant) => {
  const h = await variant.start({ env: runningAtMost(15_000) });
  const sessionId = await startEndless(h);
  expect(await runningCommands(h)).not.toEqual([]);
  expect(await h.waitUntilRest(sessionId)).toMatchObject(STOPPED.compact);
  await waitUntilParked(h, sessionId);
  await eventually(async () => (await runningCommands(h)).length === 0, { what: 'the command is gone' });
});

// For how Claude Code is parked and resumed, see `totals`.
verifies(['life.max-sessions-parks', 'life.max-sessions-busy'], async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '2' } });
  const begin = (prompt: string, behaviour: string): Promise<Json> =>
    h.ok('claude_code', { prompt, ...standIn(behaviour) });
  const { sessionId: first } = await begin('first', 'ordinary');
  await h.finish(first);
  const { sessionId: second } = await begin('second', 'ordinary');
  await h.finish(second);
  await h.say(first, 'first again');
  await h.finish(first);
  // Now the second has been idle longest.
  const { sessionId: third } = await begin('third', 'deaf');
  await waitUntilGone(h, second);
  expect(await hasProcess(h, first)).toBe(true);
  expect(await h.look(second)).toMatchObject({ status: 'rest', answer: 'answer to: second' });
  expect(await h.look(third)).toMatchObject({ status: 'running' });

  const { sessionId: fourth } = await begin('fourth', 'deaf');
  await waitUntilGone(h, first);
  const message = await h.fails(...h.dialect.start('next'), 'TOO_MANY_SESSIONS');
  expect(message).toContain('CLAUDE_CODE_MCP_MAX_SESSIONS');
  await h.fails(...h.dialect.say(first, 'first once more'), 'TOO_MANY_SESSIONS');
  for (const sessionId of [third, fourth]) {
    expect(await h.look(sessionId)).toMatchObject({ status: 'running' });
    await h.ok('claude_code_session', { action: 'cancel', sessionId });
  }
  await h.say(first, 'first once more');
  expect(await h.finish(first)).toMatchObject({ answer: 'answer to: first once more' });
});

verifies(['life.crash', 'reply.after-crash'], async (variant) => {
  const h = await variant.share();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const next = h.model.on('and now').reply(tool('Bash', { command: 'rm -f made.txt' }), text('back again'));
  const sessionId = await h.begin('make a file', {
    disallowedTools: ['Bash(rm *)'],
    systemPrompt: 'Be a parrot.',
  });
  const { id } = await h.nextRequest(sessionId);
  const since = Date.now();
  await killClaude(h, sessionId);
  const dead = await h.finish(sessionId);
  expect(dead).toMatchObject({ status: 'error', answer: undefined, requests: [] });
  expect(dead.error).toContain('SIGKILL');
  await h.fails(...h.dialect.allow(sessionId, id), 'PERMISSION_REQUEST_NOT_FOUND');
  await eventually(() => auditedDecisions(h, since).length, { what: 'the decision is audited' });
  expect(auditedDecisions(h, since)).toMatchObject([{ what: 'Bash', outcome: 'deny' }]);

  await h.say(sessionId, 'and now');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'back again', error: undefined });
  // If killed before it wrote its transcript, it starts over with the same prompt; otherwise it resumes.
  const [first, second] = h.model.requestsFor(next);
  expect(first?.userTexts.join('\n')).toContain('make a file');
  expect(first?.system).toContain('Be a parrot.');
  expect(second?.toolResults.at(-1)?.isError).toBe(true);
});
