/** Resources and prompts over HTTP: what clients of both eras can read, and which changes they are notified of. */

import type { Client } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { sessionUri } from '../../src/mcp/resource-updates.ts';
import type { Era } from '../harness/connect-client.ts';
import { openEngineHub } from './http-hub.ts';

const LIST = 'claude-code://sessions';

test('clients of both eras are notified of changes to their own sessions, and not of anyone else’s', async () => {
  const hub = await openEngineHub();
  hub.world.model.on('make it').reply(text('It is made.'));
  const token = await hub.token('caller', { name: 'owner' });
  const updatesOf = new Map<string, string[]>();
  const subscribed = async (who: string, era: Era, bearer: string): Promise<Client> => {
    const client = await hub.connect({ era, token: bearer });
    const updates: string[] = [];
    updatesOf.set(who, updates);
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void updates.push(params.uri));
    if (era === 'legacy') await client.subscribeResource({ uri: LIST });
    else await client.listen({ resourceSubscriptions: [LIST] });
    return client;
  };
  const [older, newer] = [await subscribed('older', 'legacy', token), await subscribed('newer', 'modern', token)];
  const stranger = await subscribed('stranger', 'modern', await hub.token('caller', { name: 'stranger' }));

  const { structuredContent } = await newer.callTool(
    { name: 'claude_code', arguments: { prompt: 'make it', cwd: hub.world.place.project, waitMs: 40_000 } },
    { timeout: 50_000 },
  );
  const { sessionId } = structuredContent as { sessionId: string };
  for (const who of ['older', 'newer'])
    await expect.poll(() => updatesOf.get(who), { timeout: 10_000 }).toContain(LIST);
  expect(updatesOf.get('stranger')).toEqual([]);
  for (const client of [older, newer]) {
    const { contents } = await client.readResource({ uri: sessionUri(sessionId, 'transcript') });
    expect(contents).toMatchObject([{ text: expect.stringContaining('It is made.') }]);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['delegate', 'parallel', 'review']);
  }
  await expect(stranger.readResource({ uri: sessionUri(sessionId) })).rejects.toThrow('There is no resource');
  for (const client of [older, newer, stranger]) await client.close();
});
