import { expect, test } from 'vitest';
import { returnsOf } from '../../scripts/docs/documented-tool.ts';
import type { Tool } from '../../src/mcp/define-tool.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';

/** Objects whose contents are defined elsewhere. */
const FOREIGN = /\.(input|toolInput|data|usage|modelUsage|questions\[\]|suggestions\[\]|structuredOutput)$/;

function pathsOf(value: Json, prefix = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((item) => pathsOf(item, `${prefix}[]`)))];
  if (typeof value !== 'object' || value === null || FOREIGN.test(prefix)) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return [path, ...pathsOf(item, path)];
  });
}

function undescribed(described: Tool | undefined, answer: Json): string[] {
  const known = new Set(returnsOf(described!).map(({ path }) => path));
  return pathsOf(answer).filter((path) => !known.has(path) && !path.startsWith('availableTools[]'));
}

test('every field in real answers of the compact toolset is described', async () => {
  const h = await startHarness({ env: { CLAUDE_CODE_MCP_RESUME_SECRET: 'secret' } });
  const [start, , check, manage] = TOOLSETS.compact;
  h.model.on('make it').reply(tool('Bash', { command: 'echo hi > made.txt', description: 'make' }), text('made'));

  const asking = await h.ok('claude_code', { prompt: 'make it', cwd: h.project, waitMs: 40_000 });
  expect(asking.actions).toHaveLength(1);
  expect(undescribed(start, asking)).toEqual([]);

  await h.allow(asking.sessionId);
  await h.waitUntilRest(asking.sessionId);
  const full = { action: 'poll', sessionId: asking.sessionId, responseMode: 'full', includeTools: true };
  const rest = await h.ok('claude_code_check', full);
  expect(rest.result.usage).toBeDefined();
  expect(undescribed(check, rest)).toEqual([]);

  const { sessions } = await h.ok('claude_code_session', { action: 'list', scope: 'disk' });
  expect(sessions).toHaveLength(1);
  expect(undescribed(manage, { sessions })).toEqual([]);
});

test('every field in real answers of the explicit toolset is described', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const [create, , getStatus, respond, , list] = TOOLSETS.explicit;
  h.model.on('make it').reply(tool('Bash', { command: 'echo hi > made.txt', description: 'make' }), text('made'));

  const created = await h.ok('claude_create_session', { prompt: 'make it' });
  expect(undescribed(create, created)).toEqual([]);
  const { sessionId } = created;
  const asking = await h.ok('claude_get_status', { sessionId, waitMs: 40_000 });
  expect(asking.pendingInputs).toMatchObject([{ expiresAt: expect.any(String) }]);
  expect(undescribed(getStatus, asking)).toEqual([]);

  expect(undescribed(respond, await h.allow(sessionId))).toEqual([]);
  expect(undescribed(getStatus, await h.waitUntilRest(sessionId))).toEqual([]);
  const { sessions } = await h.ok('claude_list_sessions', {});
  expect(sessions).toHaveLength(1);
  expect(undescribed(list, { sessions })).toEqual([]);
});
