import type { Tool } from '@modelcontextprotocol/client';
import { expect } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

const ACTS = { readOnlyHint: false, destructiveHint: true };
const LOOKS = { readOnlyHint: true, destructiveHint: false };

const TOOLS: Readonly<Record<Toolset, Readonly<Record<string, object>>>> = {
  compact: { claude_code: ACTS, claude_code_reply: ACTS, claude_code_check: ACTS, claude_code_session: ACTS },
  explicit: {
    claude_create_session: ACTS,
    claude_send_message: ACTS,
    claude_get_status: LOOKS,
    claude_respond: ACTS,
    claude_interrupt: ACTS,
    claude_list_sessions: LOOKS,
  },
};

const SIZES: Readonly<Record<Toolset, number>> = { compact: 7_500, explicit: 3_600 };

async function listed(h: Harness): Promise<Tool[]> {
  return (await h.client.listTools()).tools;
}

/** What a model reads of it. */
async function sizeOfList(h: Harness): Promise<number> {
  const read = (await listed(h)).map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return Buffer.byteLength(JSON.stringify(read));
}

async function startDescription(h: Harness): Promise<string> {
  return (await listed(h)).find(({ name }) => name === 'claude_code')?.description ?? '';
}

verifies(['tools.few', 'tools.described', 'tools.size'], async (variant) => {
  const h = await variant.share();
  const tools = await listed(h);
  expect(tools.map(({ name }) => name)).toEqual(Object.keys(TOOLS[variant.toolset]));
  for (const tool of tools) {
    expect(tool.title, tool.name).toBeTruthy();
    expect(tool.description, tool.name).toBeTruthy();
    expect(tool.outputSchema, tool.name).toMatchObject({ type: 'object' });
    expect(tool.annotations, tool.name).toMatchObject({
      ...TOOLS[variant.toolset][tool.name],
      idempotentHint: expect.any(Boolean),
      openWorldHint: expect.any(Boolean),
    });
  }
  expect(await sizeOfList(h)).toBeLessThanOrEqual(SIZES[variant.toolset]);
});

verifies(
  ['tools.default', 'tools.builtin-names', 'tools.real-names', 'check.available-tools', 'tools.size'],
  async (variant) => {
    let announced = 0;
    const h = await variant.start({
      env: { CLAUDE_CODE_MCP_TOOLSET: '' },
      clientOptions: { listChanged: { tools: { autoRefresh: false, onChanged: () => announced++ } } },
    });
    h.model.on('hello').always(text('hi'));
    expect((await listed(h)).map(({ name }) => name)).toEqual(Object.keys(TOOLS.compact));
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
    expect(await sizeOfList(h)).toBeLessThanOrEqual(SIZES.compact);

    // A session with few tools does not hide the others, however they are told.
    if (variant.era === 'legacy') return;
    const few = await h.ok('claude_code', { prompt: 'hello', tools: ['Read'], waitMs: 40_000 });
    expect(
      (await check(h, { action: 'poll', sessionId: few.sessionId, includeTools: true })).availableTools,
    ).toMatchObject([{ name: 'Read' }]);
    expect(await startDescription(h)).toBe(after);
  },
);

verifies('tools.list-stays', async (variant) => {
  const h = await variant.start();
  expect(h.client.getServerCapabilities()).toMatchObject({ tools: { listChanged: false } });
  let announced = 0;
  h.client.setNotificationHandler('notifications/tools/list_changed', () => {
    announced++;
  });
  h.model.on('hello').reply(text('hi'));
  const before = await listed(h);
  await h.finish(await h.begin('hello'));
  // An announcement would have come before this answer.
  expect(await listed(h)).toEqual(before);
  expect(announced).toBe(0);
});
