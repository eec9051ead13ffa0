import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';

const WAIT_MS = 20_000;

async function withWarmSpare(): Promise<Harness> {
  const harness = await startHarness({ env: { CLAUDE_CODE_MCP_PREWARM: '1', CLAUDE_CODE_MCP_LOG_LEVEL: 'debug' } });
  await eventually(() => harness.server.stderr().includes('spare is warm'), {
    what: 'the spare is warm',
    within: 25_000,
  });
  return harness;
}

test('a session takes the spare: it asks, answers and goes on like any other', { timeout: 60_000 }, async () => {
  const h = await withWarmSpare();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt', description: 'make it' }), text('made it'));
  h.model.on('and now').reply('the second');
  const { sessionId } = await h.ok('claude_code', { prompt: 'make a file', cwd: h.project });
  expect(h.server.stderr()).toContain('spare claimed');
  await h.allow(sessionId);
  const done = await h.ok('claude_code_check', { action: 'wait', sessionId });
  expect(done).toMatchObject({ status: 'idle', result: { sessionId, result: 'made it' } });
  const second = await h.ok('claude_code_reply', { sessionId, prompt: 'and now', waitMs: WAIT_MS });
  expect(second).toMatchObject({ sessionId, status: 'idle', result: { result: 'the second' } });
});

test('a spare that refuses the folder is replaced unseen', { timeout: 60_000 }, async () => {
  const h = await withWarmSpare();
  await mkdir(path.join(h.project, '.claude'));
  await writeFile(path.join(h.project, '.claude', 'settings.json'), JSON.stringify({ env: { FROM_PROJECT: '1' } }));
  h.model.on('hello').reply('hello yourself');
  const answer = await h.ok('claude_code', { prompt: 'hello', cwd: h.project, waitMs: WAIT_MS });
  expect(answer).toMatchObject({ status: 'idle', result: { result: 'hello yourself', isError: false } });
  expect(h.server.stderr()).toContain('spare refused: project_settings_not_claimable');
});

test('a session with options of its own leaves the spare to another', { timeout: 60_000 }, async () => {
  const h = await withWarmSpare();
  h.model.on('first').reply('one');
  h.model.on('second').reply('two');
  const own = { allowedTools: ['Bash(ls *)'], waitMs: WAIT_MS };
  expect(await h.ok('claude_code', { prompt: 'first', ...own })).toMatchObject({ result: { result: 'one' } });
  expect(h.server.stderr()).not.toContain('spare claimed');
  expect(await h.ok('claude_code', { prompt: 'second', waitMs: WAIT_MS })).toMatchObject({ result: { result: 'two' } });
  expect(h.server.stderr()).toContain('spare claimed');
});
