import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, hang, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import { claudePid, killClaude } from './claude-process.ts';
import { verifies } from './requirements.ts';
import { check, pollAll, start } from './steps.ts';

const soon = { CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
const parksSoon = { ...soon, CLAUDE_CODE_MCP_PARK_AFTER_MS: '50' };

const parked = (h: Harness, sessionId: string): Promise<unknown> =>
  eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the session is parked' });

verifies('life.park', async (variant) => {
  const h = await variant.start({ env: parksSoon });
  h.model.on('remember seven').reply(text('I do'));
  const recall = h.model.on('what was it').reply(text('seven'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'remember seven',
    systemPrompt: { type: 'preset', preset: 'claude_code', append: 'Be a parrot.' },
    waitMs: 40_000,
  });
  await parked(h, sessionId);
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'idle', result: { result: 'I do' } });
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what was it', waitMs: 40_000 });
  expect(next).toMatchObject({ sessionId, status: 'idle', result: { result: 'seven' } });
  const [request] = h.model.requestsFor(recall);
  expect(request?.userTexts).toEqual(['remember seven', 'what was it']);
  expect(request?.system).toContain('Be a parrot.');
});

verifies(['life.park-background', 'life.background-wakes'], async (variant) => {
  // Long enough for Claude Code to wake when its background command has ended.
  const h = await variant.start({ env: { ...soon, CLAUDE_CODE_MCP_PARK_AFTER_MS: '1500' } });
  const command = 'until [ -f go ]; do sleep 0.1; done; echo woken';
  h.model
    .on('start it')
    .reply(tool('Bash', { command, description: 'wait', run_in_background: true }), text('It runs.'));
  const wake = gate(text('It ended.'));
  h.model.on(/<task-notification>/).reply(wake);
  // A second session shows that parking goes on meanwhile.
  h.model.on('hello').reply(text('hi'));
  const { sessionId, ...first } = await h.ok('claude_code', {
    prompt: 'start it',
    allowedTools: ['Bash'],
    waitMs: 40_000,
  });
  expect(first).toMatchObject({ status: 'idle', backgroundTasks: 1, result: { result: 'It runs.' } });
  const other = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  await parked(h, other.sessionId);
  expect(await claudePid(h, sessionId)).toBeDefined();
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'idle', backgroundTasks: 1 });

  writeFileSync(join(h.project, 'go'), '');
  await wake.arrived;
  const working = await check(h, { action: 'poll', sessionId });
  expect(working.status).toBe('running');
  expect(working.result).toBeUndefined();
  const waiting = check(h, { action: 'wait', sessionId });
  wake.release();
  const done = await waiting;
  expect(done).toMatchObject({ status: 'idle', result: { result: 'It ended.', numTurns: 1, sessionTotalTurns: 3 } });
  expect(done).not.toHaveProperty('backgroundTasks');
});

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
  const sessionId = await start(h, { prompt: 'delegate this' });
  await agentMayGo.arrived;
  const firstResult = await eventually(
    async () => (await pollAll(h, sessionId, { includeTerminalEvents: true })).find(({ type }) => type === 'result'),
    { what: 'the first result' },
  );
  expect(firstResult.data.result).toBe('The agent works.');
  const meanwhile = await check(h, { action: 'poll', sessionId });
  expect(meanwhile.status).toBe('running');
  expect(meanwhile.result).toBeUndefined();
  await h.fails('claude_code_reply', { sessionId, prompt: 'go on' }, 'SESSION_BUSY');

  agentMayGo.release();
  const action = await h.waitForRequest(sessionId);
  expect(action.agentID).toEqual(expect.any(String));
  await h.allow(sessionId, { requestId: action.requestId });
  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'idle', result: { result: 'The agent is back.', isError: false } });
  expect(existsSync(join(h.project, 'by-agent.txt'))).toBe(true);
  expect(done.result.totalCostUsd).toBeCloseTo(h.model.chargedUsd(), 5);
  expect(done.result.numTurns).toBe(done.result.sessionTotalTurns);
  expect(done.result.numTurns).toBeGreaterThanOrEqual(3);
});

verifies('life.ttl', async (variant) => {
  const h = await variant.start({ env: { ...soon, CLAUDE_CODE_MCP_SESSION_TTL_MS: '300' } });
  h.model.on('hello').reply(text('hi'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  await eventually(async () => (await h.ok('claude_code_session', { action: 'list' })).sessions.length === 0, {
    what: 'the session is forgotten',
  });
  await parked(h, sessionId);
  await h.fails('claude_code_check', { action: 'poll', sessionId }, 'SESSION_NOT_FOUND');
  const onDisk = await h.ok('claude_code_session', { action: 'list', scope: 'disk' });
  expect(onDisk.sessions).toMatchObject([{ sessionId }]);
});

verifies('life.running-max', async (variant) => {
  const h = await variant.start({
    env: { ...soon, CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS: '1000', CLAUDE_CODE_MCP_SESSION_TTL_MS: '60000' },
  });
  h.model.on('think for ever').reply(hang());
  const sessionId = await start(h, { prompt: 'think for ever' });
  const state = await h.waitUntilRest(sessionId);
  expect(state).toMatchObject({ status: 'cancelled', cancelledSource: 'cleanup', cancelledReason: expect.any(String) });
  await parked(h, sessionId);
  await h.fails('claude_code_reply', { sessionId, prompt: 'go on' }, 'CANCELLED');
});

verifies('life.max-sessions-parks', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '2' } });
  h.model.on('first').always(text('1'));
  h.model.on('second').reply(text('2'));
  h.model.on('third').reply(text('3'));
  const first = await h.ok('claude_code', { prompt: 'first', waitMs: 40_000 });
  const second = await h.ok('claude_code', { prompt: 'second', waitMs: 40_000 });
  // Now the second one is the longest idle.
  await h.ok('claude_code_reply', { sessionId: first.sessionId, prompt: 'first again', waitMs: 40_000 });
  const third = await h.ok('claude_code', { prompt: 'third', waitMs: 40_000 });
  expect(third).toMatchObject({ status: 'idle', result: { result: '3' } });
  expect(await claudePid(h, second.sessionId)).toBeUndefined();
  expect(await claudePid(h, first.sessionId)).toBeDefined();
  const listed = await h.ok('claude_code_session', { action: 'list' });
  expect(listed.sessions).toHaveLength(3);
});

verifies('life.max-sessions-busy', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '1' } });
  const held = gate(text('done'));
  h.model.on('work').reply(held);
  h.model.on('next').reply(text('my turn'));
  const sessionId = await start(h, { prompt: 'work' });
  await held.arrived;
  const message = await h.fails('claude_code', { prompt: 'next' }, 'TOO_MANY_SESSIONS');
  expect(message).toContain('CLAUDE_CODE_MCP_MAX_SESSIONS');
  held.release();
  await h.waitUntilRest(sessionId);
  const next = await h.ok('claude_code', { prompt: 'next', waitMs: 40_000 });
  expect(next).toMatchObject({ result: { result: 'my turn' } });
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
  const next = h.model.on('and now').reply(text('back again'));
  const sessionId = await start(h, { prompt: 'make a file', allowedTools: ['Read'], maxTurns: 7 });
  const { requestId } = await h.waitForRequest(sessionId);
  await killClaude(h, sessionId);
  const state = await h.waitUntilRest(sessionId);
  expect(state).toMatchObject({ status: 'error', result: { isError: true, errorSubtype: 'process_exited' } });
  expect(state.result.result).toMatch(/SIGKILL/);
  expect(state).not.toHaveProperty('actions');
  await h.fails(
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId, decision: 'allow' },
    'PERMISSION_REQUEST_NOT_FOUND',
  );
  const answer = await h.ok('claude_code_reply', { sessionId, prompt: 'and now', waitMs: 40_000 });
  expect(answer).toMatchObject({ sessionId, status: 'idle', result: { result: 'back again', isError: false } });
  // Killed before it wrote its transcript, it begins again with what was said; otherwise it resumes.
  expect(h.model.requestsFor(next)[0]?.userTexts.join('\n')).toContain('make a file');
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(sessions[0]).toMatchObject({ allowedTools: ['Read'], maxTurns: 7 });
});

verifies('life.held', async (variant) => {
  const h = await variant.start({ env: parksSoon });
  h.model.on('hello').reply(text('hi'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  await parked(h, sessionId);
  // This process stands in for a terminal that has the session open.
  mkdirSync(join(h.configDir, 'sessions'), { recursive: true });
  const registration = { pid: process.pid, sessionId, cwd: h.project, status: 'idle' };
  writeFileSync(join(h.configDir, 'sessions', `${String(process.pid)}.json`), JSON.stringify(registration));
  const message = await h.fails('claude_code_reply', { sessionId, prompt: 'go on' }, 'SESSION_BUSY');
  expect(message).toContain(String(process.pid));
});
