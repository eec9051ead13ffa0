import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { verifies } from './requirements.ts';

const ACCEPTS_EDITS = { permissions: { defaultMode: 'acceptEdits' } };
const BYPASSES = { permissions: { defaultMode: 'bypassPermissions' } };

verifies(['create.configured-mode', 'create.appended-prompt'], async (variant) => {
  const h = await variant.start({ settings: ACCEPTS_EDITS });
  const [first, second] = ['a.txt', 'b.txt'].map((name) => path.join(h.project, name));
  const write = (file: string | undefined) => tool('Write', { file_path: file, content: 'written' });
  h.model.on('write the first').reply(write(first), text('written'));
  expect(await h.finish(await h.begin('write the first'))).toMatchObject({ status: 'rest', answer: 'written' });
  expect(existsSync(first!)).toBe(true);

  const script = h.model.on('write the second').reply(write(second), text('refused'));
  const { sessionId: asking } = await h.ok('claude_create_session', {
    prompt: 'write the second',
    permissionMode: 'default',
    systemPrompt: 'Speak like a pirate.',
    maxBudgetUsd: 5,
  });
  expect(await h.nextRequest(asking)).toMatchObject({ type: 'permission', toolName: 'Write' });
  await h.deny(asking);
  expect(await h.finish(asking)).toMatchObject({ status: 'rest', answer: 'refused' });
  const [request] = h.model.requestsFor(script);
  expect(request?.system).toContain('Speak like a pirate.');
  expect(request?.system).toMatch(/Claude Code|Claude Agent/);

  // The repository cannot turn permissions off.
  const cwd = path.join(h.project, 'eager');
  await mkdir(path.join(cwd, '.claude'), { recursive: true });
  await writeFile(path.join(cwd, '.claude', 'settings.json'), JSON.stringify(BYPASSES));
  h.model.on('run it').reply(tool('Bash', { command: 'env > made.txt', description: 'run' }));
  const eager = await h.begin('run it', { cwd });
  expect(await h.nextRequest(eager)).toMatchObject({ type: 'permission', toolName: 'Bash' });
  expect(existsSync(path.join(cwd, 'made.txt'))).toBe(false);
});
