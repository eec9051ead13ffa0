import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

/** All that a start answers besides the id. */
const EFFECTIVE: unknown = expect.stringContaining('permissionMode default; cwd /');
const STARTED: Readonly<Record<Toolset, object>> = {
  compact: { status: 'running', pollInterval: 3000, nextCursor: expect.any(Number), effective: EFFECTIVE },
  explicit: { status: 'running', effective: EFFECTIVE },
};

const touch = (file: string) => tool('Bash', { command: `touch ${file}`, description: `make ${file}` });

/** The server knows no session. */
async function expectNoSession(h: Harness): Promise<void> {
  expect(await h.ok(...h.dialect.listMachine())).toEqual({ sessions: [] });
}

verifies(['start.returns-at-once', 'start.one-required-parameter', 'start.default-directory'], async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('--version and more').reply(tool('Bash', { command: 'pwd' }), held);
  const answer = await h.ok(...h.dialect.start('--version and more'));
  expect(answer).toEqual({ sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/), ...STARTED[variant.toolset] });
  const asked = await held.arrived;
  expect(asked.toolResults[0]?.text).toBe(h.project);
  expect(asked.lastUserText).toBe('--version and more');
  held.release();
  expect(await h.finish(answer.sessionId)).toMatchObject({ status: 'rest', answer: 'done' });
});

verifies('start.returns-at-once', { toolsets: ['compact'], when: 'several at once' }, async (variant) => {
  const h = await variant.share();
  const names = ['north', 'south', 'east'];
  for (const name of names) h.model.on(`go ${name}`).reply(text(`went ${name}`));
  const ids = await Promise.all(names.map((name) => h.begin(`go ${name}`)));
  expect(new Set(ids).size).toBe(3);
  for (const [index, sessionId] of ids.entries()) {
    expect(await h.finish(sessionId)).toMatchObject({ answer: `went ${names[index]!}` });
  }
});

verifies('start.wait', async (variant) => {
  const h = await variant.share();
  h.model.on('hello').reply(text('hi'));
  h.model.on('make a file').reply(touch('a.txt'), text('done'));
  const done = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  expect(done).toMatchObject({ sessionId: expect.any(String), status: 'idle', result: { result: 'hi' } });
  expect(done).not.toHaveProperty('events');
  const asks = await h.ok('claude_code', { prompt: 'make a file', waitMs: 40_000 });
  expect(asks).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
  await h.allow(asks.sessionId);
  await h.waitUntilRest(asks.sessionId);
});

verifies('start.blank-prompt', async (variant) => {
  const h = await variant.start();
  const [tool] = h.dialect.start('');
  for (const prompt of ['', ' \n\t', undefined, 7]) {
    expect(await h.fails(tool, { prompt }, 'INVALID_ARGUMENT')).toContain('prompt');
  }
  await expectNoSession(h);
});

verifies(['start.options', 'reply.after-failure'], async (variant) => {
  const h = await variant.share();
  const cwd = join(h.project, 'elsewhere');
  await mkdir(cwd);
  const script = h.model.on('go').reply(touch('here.txt'), touch('there.txt'));
  const sessionId = await h.begin('go', {
    cwd: 'elsewhere',
    model: 'claude-sonnet-4-6',
    allowedTools: ['Bash'],
    disallowedTools: ['WebFetch'],
    maxTurns: 1,
  });
  expect(await h.finish(sessionId)).toMatchObject({ status: 'error', error: expect.stringMatching(/turns/) });
  expect(existsSync(join(cwd, 'here.txt'))).toBe(true);
  expect(existsSync(join(cwd, 'there.txt'))).toBe(false);
  const [request] = h.model.requestsFor(script);
  expect(request?.model).toBe('claude-sonnet-4-6');
  expect(request?.tools).not.toContain('WebFetch');

  h.model.on('say more').reply(text('said'));
  await h.say(sessionId, 'say more');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'said', error: undefined });
});

verifies(['start.allowed-tools', 'start.disallowed-wins'], async (variant) => {
  const h = await variant.share();
  h.model.on('make files').reply(touch('a.txt'), tool('Bash', { command: 'mkdir sub' }), text('done'));
  const allowedTools = ['Bash(touch *)', 'Bash(mkdir *)'];
  const sessionId = await h.begin('make files', { allowedTools, disallowedTools: ['Bash(mkdir *)'] });
  // A request would end the wait.
  expect(await h.watch(sessionId)).toMatchObject({ status: 'rest', answer: 'done' });
  expect(existsSync(join(h.project, 'a.txt'))).toBe(true);
  expect(existsSync(join(h.project, 'sub'))).toBe(false);
});

verifies('start.bypass', async (variant) => {
  const h = await variant.start();
  const call = h.dialect.start('touch', { permissionMode: 'bypassPermissions' });
  expect(await h.fails(...call, 'PERMISSION_DENIED')).toContain('CLAUDE_CODE_MCP_ALLOW_BYPASS');
  await expectNoSession(h);

  await h.restartServer({ env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: '1' } });
  h.model.on('touch').reply(touch('made.txt'), text('made'));
  const { sessionId } = await h.ok(...call);
  expect(await h.watch(sessionId)).toMatchObject({ status: 'rest', answer: 'made' });
  expect(existsSync(join(h.project, 'made.txt'))).toBe(true);
});

verifies('start.resume-token', async (variant) => {
  const secret = 'a secret of the operator';
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_RESUME_SECRET: secret } });
  h.model.on('hello').always(text('hi'));
  const { sessionId, resumeToken } = await h.ok('claude_code', { prompt: 'hello' });
  expect(resumeToken).toBe(createHmac('sha256', secret).update(sessionId).digest('hex'));
  await h.waitUntilRest(sessionId);
  const again = await h.ok('claude_code_reply', { sessionId, prompt: 'hello again', waitMs: 40_000 });
  expect(again.resumeToken).toBe(resumeToken);
});

verifies('start.structured-output', async (variant) => {
  const h = await variant.share();
  h.model.on('how many').reply(tool('StructuredOutput', { count: 3 }), text('three'));
  const schema = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };
  const done = await h.ok('claude_code', {
    prompt: 'how many',
    waitMs: 40_000,
    advanced: { outputFormat: { type: 'json_schema', schema } },
  });
  expect(done.result.structuredOutput).toEqual({ count: 3 });
  const without = await check(h, { action: 'poll', sessionId: done.sessionId, includeStructuredOutput: false });
  expect(without.result).not.toHaveProperty('structuredOutput');
});

verifies('start.no-such-directory', async (variant) => {
  const h = await variant.start();
  await writeFile(join(h.project, 'file.txt'), '');
  for (const cwd of [join(h.project, 'no', 'such', 'place'), join(h.project, 'file.txt')]) {
    const { isError, data } = await h.call(...h.dialect.start('hello', { cwd }));
    expect(isError).toBe(true);
    expect(data).toMatchObject({ sessionId: '', isError: true });
    expect(data.error).toMatch(/^Error \[INVALID_ARGUMENT\]: /);
    expect(data.error).toContain(cwd);
  }
  await expectNoSession(h);
});

/** A program in the project that stands in for Claude Code. */
async function standIn(h: Harness, name: string, lines: string[]): Promise<string> {
  const path = join(h.project, name);
  await writeFile(path, ['#!/bin/sh', ...lines, ''].join('\n'));
  await chmod(path, 0o755);
  return path;
}

verifies('start.no-such-executable', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_EXECUTABLE: '/no/such/claude' } });
  const { isError, data } = await h.call(...h.dialect.start('hello'));
  expect(isError).toBe(true);
  expect(data).toMatchObject({ sessionId: '', error: expect.stringContaining('/no/such/claude') });
  await expectNoSession(h);
});

verifies('start.no-such-executable', { when: 'named by the caller', toolsets: ['compact'] }, async (variant) => {
  const h = await variant.start();
  for (const path of ['/no/such/claude', 'no-such-claude-on-the-path']) {
    const advanced = { pathToClaudeCodeExecutable: path };
    const { isError, data } = await h.call('claude_code', { prompt: 'hello', advanced });
    expect(isError).toBe(true);
    expect(data).toMatchObject({ sessionId: '', status: 'error' });
    expect(data.error).toContain(path);
  }
  expect((await h.ok('claude_code_session', { action: 'list' })).sessions).toEqual([]);
});

verifies('start.exits-at-once', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_EXECUTABLE: './claude-that-fails' } });
  await standIn(h, 'claude-that-fails', ['echo "the licence has expired" >&2', 'exit 7']);
  const message = await h.fails(...h.dialect.start('hello'), 'INTERNAL');
  expect(message).toContain('the licence has expired');
  expect(message).toContain('7');
  await expectNoSession(h);
});

const HANGS = ['exec tail -f /dev/null'];

async function expectNothingHangs(h: Harness): Promise<void> {
  await expectNoSession(h);
  await eventually(async () => !(await h.processes()).some(({ command }) => command.includes('/dev/null')), {
    what: 'the hanging process is gone',
  });
}

verifies('start.hangs', { when: 'as long as the caller gives it', toolsets: ['compact'] }, async (variant) => {
  const h = await variant.start();
  const path = await standIn(h, 'claude-that-hangs', HANGS);
  const advanced = { pathToClaudeCodeExecutable: path, sessionInitTimeoutMs: 300 };
  const message = await h.fails('claude_code', { prompt: 'hello', advanced }, 'TIMEOUT');
  expect(message).toContain('sessionInitTimeoutMs');
  await expectNothingHangs(h);
});

verifies('start.hangs', { when: 'for the time the operator set', toolsets: ['explicit'] }, async (variant) => {
  const h = await variant.start({
    env: { CLAUDE_CODE_MCP_EXECUTABLE: './claude-that-hangs', CLAUDE_CODE_MCP_START_TIMEOUT_MS: '300' },
  });
  await standIn(h, 'claude-that-hangs', HANGS);
  const message = await h.fails('claude_create_session', { prompt: 'hello' }, 'TIMEOUT');
  for (const words of ['within 300 ms', 'doctor', 'CLAUDE_CODE_MCP_START_TIMEOUT_MS']) expect(message).toContain(words);
  await expectNothingHangs(h);
});
