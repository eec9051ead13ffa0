import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import { verifies } from './requirements.ts';
import { check, start } from './steps.ts';

verifies(['start.returns-at-once', 'start.one-required-parameter', 'start.default-directory'], async (variant) => {
  const h = await variant.start();
  const held = gate(text('done'));
  h.model.on('--version and more').reply(tool('Bash', { command: 'pwd' }), held);
  const answer = await h.ok('claude_code', { prompt: '--version and more' });
  expect(answer).toEqual({
    sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    status: 'running',
    pollInterval: 3000,
  });
  const asked = await held.arrived;
  expect(asked.toolResults[0]?.text).toBe(h.project);
  expect(asked.lastUserText).toBe('--version and more');
  held.release();
  expect(await h.waitUntilRest(answer.sessionId)).toMatchObject({ result: { result: 'done' } });
});

verifies('start.wait', async (variant) => {
  const h = await variant.start();
  h.model.on('hello').reply(text('hi'));
  h.model.on('make a file').reply(tool('Bash', { command: 'touch a.txt' }), text('done'));
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
  for (const prompt of ['', ' \n\t', undefined, 7]) {
    const message = await h.fails('claude_code', { prompt }, 'INVALID_ARGUMENT');
    expect(message).toContain('prompt');
  }
});

verifies(['start.allowed-tools', 'start.disallowed-wins'], async (variant) => {
  const h = await variant.start();
  h.model
    .on('make files')
    .reply(tool('Bash', { command: 'touch a.txt' }), tool('Bash', { command: 'mkdir sub' }), text('done'));
  const { status } = await h.ok('claude_code', {
    prompt: 'make files',
    allowedTools: ['Bash(touch *)', 'Bash(mkdir *)'],
    disallowedTools: ['Bash(mkdir *)'],
    waitMs: 40_000,
  });
  expect(status).toBe('idle');
  expect(existsSync(join(h.project, 'a.txt'))).toBe(true);
  expect(existsSync(join(h.project, 'sub'))).toBe(false);
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
  const h = await variant.start();
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
    const { isError, data } = await h.call('claude_code', { prompt: 'hello', cwd });
    expect(isError).toBe(true);
    expect(data).toMatchObject({ sessionId: '', status: 'error', isError: true });
    expect(data.error).toMatch(/^Error \[INVALID_ARGUMENT\]: /);
    expect(data.error).toContain(cwd);
  }
});

const executable = (path: string) => ({ prompt: 'hello', advanced: { pathToClaudeCodeExecutable: path } });

async function script(h: Harness, name: string, lines: string[]): Promise<string> {
  const path = join(h.home, name);
  await writeFile(path, ['#!/bin/sh', ...lines, ''].join('\n'));
  await chmod(path, 0o755);
  return path;
}

verifies('start.no-such-executable', async (variant) => {
  const h = await variant.start();
  for (const path of ['/no/such/claude', 'no-such-claude-on-the-path']) {
    const { isError, data } = await h.call('claude_code', executable(path));
    expect(isError).toBe(true);
    expect(data).toMatchObject({ sessionId: '', status: 'error' });
    expect(data.error).toContain(path);
  }
  expect((await h.ok('claude_code_session', { action: 'list' })).sessions).toEqual([]);
});

verifies('start.exits-at-once', async (variant) => {
  const h = await variant.start();
  const path = await script(h, 'claude-that-fails', ['echo "the licence has expired" >&2', 'exit 7']);
  const message = await h.fails('claude_code', executable(path), 'INTERNAL');
  expect(message).toContain('the licence has expired');
  expect(message).toContain('7');
  expect((await h.ok('claude_code_session', { action: 'list' })).sessions).toEqual([]);
});

verifies('start.hangs', async (variant) => {
  const h = await variant.start();
  const path = await script(h, 'claude-that-hangs', ['exec tail -f /dev/null']);
  const advanced = { pathToClaudeCodeExecutable: path, sessionInitTimeoutMs: 300 };
  const message = await h.fails('claude_code', { prompt: 'hello', advanced }, 'TIMEOUT');
  expect(message).toContain('sessionInitTimeoutMs');
  expect((await h.ok('claude_code_session', { action: 'list' })).sessions).toEqual([]);
  await eventually(async () => !(await h.processes()).some(({ command }) => command.includes('/dev/null')), {
    what: 'the hanging process is gone',
  });
});

verifies('start.returns-at-once', { when: 'several at once' }, async (variant) => {
  const h = await variant.start();
  const names = ['north', 'south', 'east'];
  for (const name of names) h.model.on(`go ${name}`).reply(text(`went ${name}`));
  const ids = await Promise.all(names.map((name) => start(h, { prompt: `go ${name}` })));
  expect(new Set(ids).size).toBe(3);
  for (const [index, sessionId] of ids.entries()) {
    const { result } = await h.waitUntilRest(sessionId);
    expect(result.result).toBe(`went ${names[index]!}`);
  }
});
