import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';

const write = (file: string) => tool('Write', { file_path: file, content: 'written' });

describe('permissionMode', () => {
  test('left out, Claude Code runs as its settings say', async () => {
    const h = await startHarness({ toolset: 'explicit', settings: { permissions: { defaultMode: 'acceptEdits' } } });
    const file = path.join(h.project, 'a.txt');
    h.model.on('write').reply(write(file), text('written'));
    const { sessionId } = await h.ok('claude_create_session', { prompt: 'write' });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed' });
    expect(existsSync(file)).toBe(true);
  });

  test('given, it counts more than the settings', async () => {
    const h = await startHarness({ toolset: 'explicit', settings: { permissions: { defaultMode: 'acceptEdits' } } });
    h.model.on('write').reply(write(path.join(h.project, 'a.txt')), text('refused'));
    const { sessionId } = await h.ok('claude_create_session', { prompt: 'write', permissionMode: 'default' });
    expect(await h.waitForRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Write' });
    await h.deny(sessionId, { message: 'not there' });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'refused' });
  });

  test('of a kind that only the compact set offers is refused', async () => {
    const h = await startHarness({ toolset: 'explicit' });
    await h.fails('claude_create_session', { prompt: 'x', permissionMode: 'auto' }, 'INVALID_ARGUMENT');
  });
});

describe('dangerouslySkipPermissions', () => {
  test.each([{ dangerouslySkipPermissions: true }, { permissionMode: 'bypassPermissions' }])(
    'is refused unless the operator allows it (%j)',
    async (options) => {
      const h = await startHarness({ toolset: 'explicit' });
      const message = await h.fails('claude_create_session', { prompt: 'x', ...options }, 'PERMISSION_DENIED');
      expect(message).toContain('CLAUDE_CODE_MCP_ALLOW_BYPASS');
      expect(await h.ok('claude_list_sessions', {})).toEqual({ sessions: [] });
    },
  );

  test('asks nothing where the operator allows it', async () => {
    const h = await startHarness({ toolset: 'explicit', env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: '1' } });
    h.model.on('touch').reply(tool('Bash', { command: 'touch made.txt', description: 'x' }), text('made'));
    const { sessionId } = await h.ok('claude_create_session', { prompt: 'touch', dangerouslySkipPermissions: true });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'made' });
    expect(existsSync(path.join(h.project, 'made.txt'))).toBe(true);

    const both = { prompt: 'x', dangerouslySkipPermissions: true, permissionMode: 'plan' };
    await h.fails('claude_create_session', both, 'INVALID_ARGUMENT');
  });
});

test('systemPrompt is added to that of Claude Code, and other options reach it', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const elsewhere = path.join(h.project, 'elsewhere');
  await mkdir(elsewhere);
  const script = h.model
    .on('go')
    .reply(tool('Bash', { command: 'touch here.txt', description: 'x' }), tool('Bash', { command: 'touch there.txt' }));
  const { sessionId } = await h.ok('claude_create_session', {
    prompt: 'go',
    systemPrompt: 'Speak like a pirate.',
    workingDirectory: 'elsewhere',
    model: 'claude-sonnet-4-6',
    allowedTools: ['Bash'],
    disallowedTools: ['WebFetch'],
    maxTurns: 1,
    maxBudgetUsd: 5,
  });

  const done = await h.waitUntilRest(sessionId);

  expect(done).toMatchObject({ status: 'error', error: expect.stringMatching(/turns/) });
  expect(existsSync(path.join(elsewhere, 'here.txt'))).toBe(true);
  const [request] = h.model.requestsFor(script);
  expect(request?.system).toContain('Speak like a pirate.');
  expect(request?.system).toMatch(/Claude Code|Claude Agent/);
  expect(request?.model).toBe('claude-sonnet-4-6');
  expect(request?.tools).not.toContain('WebFetch');
});

test('a start that cannot be is an error of the call', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const missing = { prompt: 'x', workingDirectory: path.join(h.project, 'missing') };
  expect(await h.fails('claude_create_session', missing, 'INVALID_ARGUMENT')).toContain('does not exist');
  await h.fails('claude_create_session', { prompt: ' \n' }, 'INVALID_ARGUMENT');
  await h.fails('claude_create_session', {}, 'INVALID_ARGUMENT');
  const misspelt = await h.fails('claude_create_session', { prompt: 'x', workingDirectry: '.' }, 'INVALID_ARGUMENT');
  expect(misspelt).toContain('did you mean workingDirectory?');
  expect(await h.ok('claude_list_sessions', {})).toEqual({ sessions: [] });
});
