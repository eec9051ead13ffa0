import type { Tool } from '@modelcontextprotocol/client';
import { expect } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

const NAMES = ['claude_code', 'claude_code_reply', 'claude_code_check', 'claude_code_session'];

async function listed(h: Harness): Promise<Tool[]> {
  return (await h.client.listTools()).tools;
}

async function startDescription(h: Harness): Promise<string> {
  return (await listed(h)).find(({ name }) => name === 'claude_code')?.description ?? '';
}

verifies(['tools.four-by-default', 'tools.described'], async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_TOOLSET: '' } });
  const tools = await listed(h);
  expect(tools.map(({ name }) => name)).toEqual(NAMES);
  for (const tool of tools) {
    expect(tool.title, tool.name).toBeTruthy();
    expect(tool.description, tool.name).toBeTruthy();
    expect(tool.outputSchema, tool.name).toMatchObject({ type: 'object' });
    expect(tool.annotations, tool.name).toMatchObject({
      readOnlyHint: expect.any(Boolean),
      destructiveHint: expect.any(Boolean),
      idempotentHint: expect.any(Boolean),
      openWorldHint: expect.any(Boolean),
    });
  }
});

verifies(['tools.builtin-names', 'tools.real-names', 'check.available-tools'], async (variant) => {
  let announced = 0;
  const h = await variant.start({
    clientOptions: { listChanged: { tools: { autoRefresh: false, onChanged: () => announced++ } } },
  });
  h.model.on('hello').always(text('hi'));
  const before = await startDescription(h);
  for (const name of ['Bash', 'Read', 'Edit', 'Write', 'Grep', 'WebFetch', 'Agent']) expect(before).toContain(name);
  expect(announced).toBe(0);

  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  await eventually(() => announced > 0, { what: 'tools/list_changed is announced' });
  const { availableTools } = await check(h, { action: 'poll', sessionId, includeTools: true });
  const after = await startDescription(h);
  for (const { name } of availableTools) expect(after).toContain(name);
  expect(after).not.toBe(before);
  for (const { category } of availableTools) expect(category).toEqual(expect.any(String));

  // A session with few tools does not hide the others.
  const few = await h.ok('claude_code', { prompt: 'hello', tools: ['Read'], waitMs: 40_000 });
  expect(
    (await check(h, { action: 'poll', sessionId: few.sessionId, includeTools: true })).availableTools,
  ).toMatchObject([{ name: 'Read' }]);
  expect(await startDescription(h)).toBe(after);
});
