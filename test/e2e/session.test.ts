import { expect } from 'vitest';
import { verifies } from './requirements.ts';
import { standIn } from './stand-in.ts';

const HIDDEN = 'a-value-nobody-may-see';

verifies(['session.list', 'session.sensitive'], async (variant) => {
  const h = await variant.start();
  expect(await h.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
  const { env, ...program } = standIn('ordinary').advanced;
  const agents = { helper: { description: 'helps', prompt: 'help' } };
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'hello',
    allowedTools: ['Read'],
    disallowedTools: ['WebFetch'],
    systemPrompt: 'You are a parrot.',
    agents,
    strictMcpConfig: false,
    waitMs: 40_000,
    advanced: {
      ...program,
      env: { ...env, MY_VALUE: HIDDEN },
      mcpServers: { notes: { command: 'true', env: { KEY: HIDDEN } } },
      settings: { env: { OTHER: HIDDEN } },
    },
  });
  const { sessions } = await h.ok('claude_code_session', { action: 'list' });
  expect(sessions).toHaveLength(1);
  expect(sessions[0]).toMatchObject({
    sessionId,
    status: 'idle',
    totalTurns: 1,
    totalCostUsd: expect.any(Number),
    model: expect.any(String),
    permissionMode: 'default',
    allowedTools: ['Read'],
    disallowedTools: ['WebFetch'],
    strictMcpConfig: false,
  });
  expect(Date.parse(sessions[0].createdAt)).toBeLessThanOrEqual(Date.parse(sessions[0].lastActiveAt));
  for (const name of ['cwd', 'systemPrompt', 'agents']) expect(sessions[0]).not.toHaveProperty(name);
  expect(await h.ok('claude_code_session', { action: 'get', sessionId })).toEqual({ sessions });

  const shown = await h.ok('claude_code_session', { action: 'get', sessionId, includeSensitive: true });
  expect(shown.sessions[0]).toMatchObject({ cwd: h.project, systemPrompt: 'You are a parrot.', agents });
  for (const name of ['env', 'mcpServers', 'settings']) expect(shown.sessions[0]).not.toHaveProperty(name);
  expect(JSON.stringify([sessions, shown])).not.toContain(HIDDEN);
});

// For turning it off, see `operator-limits`.
