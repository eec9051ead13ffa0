import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';

const WAIT_MS = 40_000;

test('a session uses the spare process unless it has its own options; a spare process takes prompts as text, and one that refuses the project is replaced unnoticed', async () => {
  const h = await startHarness({ args: ['--prewarm', '--allowed-dirs', '.', '--log-level', 'debug'] });
  const timesLogged = (words: string): number => h.server.stderr().split(words).length - 1;
  const waitForSpare = (count: number): Promise<unknown> =>
    eventually(() => timesLogged('spare is warm') === count, {
      what: `spare ${String(count)} is warm`,
      within: WAIT_MS,
    });
  await waitForSpare(1);
  h.model.on('first').reply('one');
  const own = { allowedTools: ['Bash(ls *)'], waitMs: WAIT_MS };
  expect(await h.ok('claude_code', { prompt: 'first', ...own })).toMatchObject({ result: { result: 'one' } });
  expect(timesLogged('spare claimed')).toBe(0);

  // It works like any other session, and slash commands are text for it too.
  const [prompt, next] = ['/config permissionMode=acceptEdits', '/settings permissionMode=auto'] as const;
  h.model.on(prompt).reply(tool('Bash', { command: 'touch made.txt', description: 'make it' }), text('made it'));
  h.model.on(next).reply('the second');
  const { sessionId } = await h.ok('claude_code', { prompt, cwd: h.project });
  expect(timesLogged('spare claimed')).toBe(1);
  await h.allow(sessionId);
  const done = await h.ok('claude_code_check', { action: 'wait', sessionId });
  expect(done).toMatchObject({ status: 'idle', result: { sessionId, result: 'made it' } });
  const second = await h.ok('claude_code_reply', { sessionId, prompt: next, waitMs: WAIT_MS });
  expect(second).toMatchObject({ sessionId, status: 'idle', result: { result: 'the second' } });
  expect(existsSync(path.join(h.configDir, 'settings.json'))).toBe(false);

  await waitForSpare(2);
  await mkdir(path.join(h.project, '.claude'));
  await writeFile(path.join(h.project, '.claude', 'settings.json'), JSON.stringify({ env: { FROM_PROJECT: '1' } }));
  h.model.on('hello').reply('hello yourself');
  const answer = await h.ok('claude_code', { prompt: 'hello', cwd: h.project, waitMs: WAIT_MS });
  expect(answer).toMatchObject({ status: 'idle', result: { result: 'hello yourself', isError: false } });
  expect(h.server.stderr()).toContain('spare refused: project_settings_not_claimable');
});
