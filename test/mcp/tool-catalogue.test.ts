import { expect, test } from 'vitest';
import { describeTools } from '../../src/views/tool-names.ts';
import { text } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';

test('every tool that a real session reports has a category and a description', async () => {
  const h = await startHarness();
  h.model.on('hello').reply(text('hi'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  const args = { action: 'poll', sessionId, pollOptions: { includeTools: true } };
  const { availableTools } = await h.ok('claude_code_check', args);
  expect(availableTools.length).toBeGreaterThan(10);
  const bare = availableTools.filter((tool: { category: string; description?: string }) => !tool.description);
  expect(bare, 'give these a line in tool-catalogue.ts').toEqual([]);
});

test('an MCP server’s tool is distinguished from an unknown one', () => {
  expect(describeTools(['mcp__box__open', 'Unheard'])).toEqual([
    { name: 'mcp__box__open', category: 'mcp' },
    { name: 'Unheard', category: 'other' },
  ]);
});
