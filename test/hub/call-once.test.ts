import { expect, test } from 'vitest';
import { IDEMPOTENCY_META_KEY } from '../../src/mcp/call-once.ts';
import { openAccessWorld } from './access-world.ts';

const keyed = (key: unknown) => ({ [IDEMPOTENCY_META_KEY]: key });

test('a tool call with an idempotency key in its _meta is carried out once', async () => {
  const world = await openAccessWorld();
  const client = await world.connect('owner', 'compact');
  const start = (key: unknown, prompt = 'go') =>
    client.callTool({ name: 'claude_code', arguments: { prompt, cwd: process.cwd() }, _meta: keyed(key) });
  const [first, second] = await Promise.all([start('k1'), start('k1')]);
  expect(second).toEqual(first);
  expect(await start('k1')).toEqual(first);
  expect(world.hub.agents).toHaveLength(1);
  for (const wrong of [await start('k1', 'something else'), await start(7), await start('two words')])
    expect(wrong).toMatchObject({
      isError: true,
      structuredContent: { error: expect.stringContaining('INVALID_ARGUMENT') as string },
    });
  expect(world.hub.agents).toHaveLength(1);
  expect(await start('k2')).not.toEqual(first);
  expect(world.hub.agents).toHaveLength(2);
});
