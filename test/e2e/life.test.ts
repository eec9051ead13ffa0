import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, hang, text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { claudePid, killClaude } from './claude-process.ts';
import { verifies } from './requirements.ts';
import { check, pollAll } from './steps.ts';

const soon = { CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
const parksSoon = { ...soon, CLAUDE_CODE_MCP_PARK_AFTER_MS: '50' };

const parked = (h: Harness, sessionId: string): Promise<unknown> =>
  eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the session is parked' });

verifies('life.park', async (variant) => {
  const h = await variant.start({ env: parksSoon });
  h.model.on('remember seven').reply(text('I do'));
  const recall = h.model.on('what was it').reply(text('seven'));
  const sessionId = await h.begin('remember seven', { systemPrompt: 'Be a parrot.' });
  await h.finish(sessionId);
  await parked(h, sessionId);
  expect(await h.look(sessionId)).toMatchObject({ status: 'rest', answer: 'I do' });
  await h.say(sessionId, 'what was it');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'seven' });
  const [request] = h.model.requestsFor(recall);
  expect(request?.userTexts).toEqual(['remember seven', 'what was it']);
  expect(request?.system).toContain('Be a parrot.');
});

verifies(['life.park-background', 'life.background-wakes'], async (variant) => {
  // Long enough for Claude Code to wake when its background command has ended.
  const h = await variant.start({ env: { ...soon, CLAUDE_CODE_MCP_PARK_AFTER_MS: '1500' } });
  const wake = gate(text('It ended.'));
  const { sessionId, end } = await startBackground(h, wake);
  // A second session shows that parking goes on meanwhile.
  h.model.on('hello').reply(text('hi'));
  const other = await h.begin('hello');
  await h.finish(other);
  await parked(h, other);
  expect(await claudePid(h, sessionId)).toBeDefined();
  expect(await h.look(sessionId)).toMatchObject({ status: 'rest', answer: 'It runs.' });

  end();
  await wake.arrived;
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined });
  const waiting = h.watch(sessionId);
  wake.release();
  expect(await waiting).toMatchObject({ status: 'rest', answer: 'It ended.', turns: 3 });
});

verifies(['check.background-tasks', 'totals.call'], async (variant) => {
  const h = await variant.start();
  const { sessionId, end } = await startBackground(h, text('It ended.'));
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'idle', backgroundTasks: 1 });
  end();
  const done = await h.waitFor(sessionId, ({ result }) => result?.result === 'It ended.', { what: 'it has woken' });
  expect(done).toMatchObject({ status: 'idle', result: { numTurns: 1, sessionTotalTurns: 3 } });
  expect(done).not.toHaveProperty('backgroundTasks');
});

/** A session at rest whose background command runs until it is ended; then Claude says what is given. */
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

/** Whether Claude Code has said a result, be it the last or not. */
const HAS_RESULT: Readonly<Record<Toolset, (h: Harness, sessionId: string) => Promise<boolean>>> = {
  compact: async (h, sessionId) =>
    (await pollAll(h, sessionId, { includeTerminalEvents: true })).some(({ type }) => type === 'result'),
  explicit: async (h, sessionId) => (await h.ok('claude_get_status', { sessionId })).turnCount > 0,
};

verifies('life.background-agent', async (variant) => {
  const h = await variant.start();
  const agentMayGo = gate(tool('Bash', { command: 'touch by-agent.txt' }));
  h.model
    .on('delegate this')
    .reply(
      tool('Agent', { description: 'an errand', prompt: 'run the errand', subagent_type: 'general-purpose' }),
      text('The agent works.'),
      text('The agent is back.'),
    );
  h.model.on(/^run the errand/).reply(agentMayGo, text('errand run'));
  const sessionId = await h.begin('delegate this');
  await agentMayGo.arrived;
  await eventually(() => HAS_RESULT[variant.toolset](h, sessionId), { what: 'the first result' });
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined });

  agentMayGo.release();
  expect(await h.nextRequest(sessionId)).toMatchObject({ input: { command: 'touch by-agent.txt' } });
  await h.allow(sessionId);
  const done = await h.finish(sessionId);
  expect(done).toMatchObject({ status: 'rest', answer: 'The agent is back.' });
  expect(existsSync(join(h.project, 'by-agent.txt'))).toBe(true);
  expect(done.costUsd).toBeCloseTo(h.model.chargedUsd(), 5);
  expect(done.turns).toBeGreaterThanOrEqual(3);
});

verifies('life.ttl', async (variant) => {
  const h = await variant.start({ env: { ...soon, CLAUDE_CODE_MCP_SESSION_TTL_MS: '300' } });
  h.model.on('hello').reply(text('hi'));
  const sessionId = await h.begin('hello');
  const look = h.dialect.look(sessionId);
  await eventually(async () => (await h.call(...look)).isError, { what: 'the session is forgotten' });
  await parked(h, sessionId);
  await h.fails(...look, 'SESSION_NOT_FOUND');
  expect((await h.ok(...h.dialect.listMachine())).sessions).toMatchObject([{ sessionId }]);
});

/** How it is told that the server stopped the work of a session. */
const STOPPED: Readonly<Record<Toolset, object>> = {
  compact: {
    status: 'idle',
    cancelledSource: 'cleanup',
    cancelledReason: expect.any(String),
    cancelledAt: expect.any(String),
  },
  explicit: { status: 'interrupted', error: expect.stringContaining('longer than 1000 ms') },
};

verifies('life.running-max', async (variant) => {
  const h = await variant.start({
    env: { ...soon, CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS: '1000', CLAUDE_CODE_MCP_SESSION_TTL_MS: '60000' },
  });
  h.model.on('think forever').reply(hang());
  const sessionId = await h.begin('think forever');
  expect(await h.waitUntilRest(sessionId)).toMatchObject(STOPPED[variant.toolset]);
  await parked(h, sessionId);

  // Its own start may take longer than it may work here: what counts is that it is taken.
  h.model.on('go on').always(hang());
  expect(await h.say(sessionId, 'go on')).toMatchObject({ sessionId, status: 'running' });
});

verifies('life.max-sessions-parks', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '2' } });
  h.model.on('first').always(text('1'));
  h.model.on('second').reply(text('2'));
  h.model.on('third').reply(text('3'));
  const first = await h.begin('first');
  await h.finish(first);
  const second = await h.begin('second');
  await h.finish(second);
  await h.say(first, 'first again');
  await h.finish(first);
  // Now the second one is the longest idle.
  expect(await h.finish(await h.begin('third'))).toMatchObject({ status: 'rest', answer: '3' });
  expect(await claudePid(h, second)).toBeUndefined();
  expect(await claudePid(h, first)).toBeDefined();
  expect(await h.look(second)).toMatchObject({ status: 'rest', answer: '2' });
});

verifies('life.max-sessions-busy', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '1' } });
  const held = gate(text('done'));
  h.model.on('work').reply(held);
  h.model.on('next').reply(text('my turn'));
  const sessionId = await h.begin('work');
  await held.arrived;
  const message = await h.fails(...h.dialect.start('next'), 'TOO_MANY_SESSIONS');
  expect(message).toContain('CLAUDE_CODE_MCP_MAX_SESSIONS');
  held.release();
  await h.finish(sessionId);
  expect(await h.finish(await h.begin('next'))).toMatchObject({ answer: 'my turn' });
});

verifies('life.not-persistent', async (variant) => {
  const h = await variant.start({ env: parksSoon });
  h.model.on('keep nothing').reply(text('nothing kept'));
  h.model.on('hello').reply(text('hi'));
  h.model.on('still there').reply(text('yes'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'keep nothing',
    waitMs: 40_000,
    advanced: { persistSession: false },
  });
  const other = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  await parked(h, other.sessionId);
  expect(await claudePid(h, sessionId)).toBeDefined();
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'still there', waitMs: 40_000 });
  expect(next).toMatchObject({ result: { result: 'yes' } });
  await h.fails('claude_code_reply', { sessionId, prompt: 'fork', forkSession: true }, 'INVALID_ARGUMENT');
});

verifies(['life.crash', 'reply.after-crash'], async (variant) => {
  const h = await variant.start();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const next = h.model.on('and now').reply(tool('Bash', { command: 'rm -f made.txt' }), text('back again'));
  const sessionId = await h.begin('make a file', {
    disallowedTools: ['Bash(rm *)'],
    systemPrompt: 'Be a parrot.',
  });
  const { id } = await h.nextRequest(sessionId);
  await killClaude(h, sessionId);
  const dead = await h.finish(sessionId);
  expect(dead).toMatchObject({ status: 'error', answer: undefined, requests: [] });
  expect(dead.error).toContain('SIGKILL');
  await h.fails(...h.dialect.allow(sessionId, id), 'PERMISSION_REQUEST_NOT_FOUND');

  await h.say(sessionId, 'and now');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'back again', error: undefined });
  // Killed before it wrote its transcript, it begins again with what was said; otherwise it resumes.
  const [first, second] = h.model.requestsFor(next);
  expect(first?.userTexts.join('\n')).toContain('make a file');
  expect(first?.system).toContain('Be a parrot.');
  expect(second?.toolResults.at(-1)?.isError).toBe(true);
});
