import type { Client } from '@modelcontextprotocol/client';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { allowOnce, SlowPerson } from '../e2e/forms-support.ts';
import { ERAS } from '../harness/connect-client.ts';
import type { Json } from '../harness/json.ts';
import { openEngineHub } from './http-hub.ts';

async function call(client: Client, name: string, args: object): Promise<Json> {
  const result = await client.callTool({ name, arguments: { ...args } }, { timeout: 50_000 });
  const [content] = result.content as { text: string }[];
  return { ...(JSON.parse(content?.text ?? '{}') as object), isError: result.isError === true };
}

describe.each(ERAS)('a %s client over HTTP', (era) => {
  test('starts a session, is told its progress and asks its user by form', async () => {
    const hub = await openEngineHub();
    hub.world.model.on('go').reply(tool('Bash', { command: 'touch made.txt', description: 'make' }), text('made it'));
    const progress: unknown[] = [];
    const person = new SlowPerson();
    const client = await hub.connect({ era, token: await hub.token(), form: person.form });
    const cwd = hub.world.place.project;
    const answer = client.callTool(
      { name: 'claude_code', arguments: { prompt: 'go', cwd, waitMs: 40_000 } },
      { timeout: 50_000, onprogress: (one) => progress.push(one) },
    );
    const form = await person.nextForm();
    expect(form.request.message).toContain('touch made.txt');
    form.answer(allowOnce);
    const [content] = (await answer).content as { text: string }[];
    expect(JSON.parse(content!.text)).toMatchObject({ status: 'idle', result: { result: 'made it' } });
    expect(existsSync(path.join(cwd, 'made.txt'))).toBe(true);
    expect(progress.length).toBeGreaterThan(0);
    await client.close();
  });

  test('works in no directory that it has not named', async () => {
    const hub = await openEngineHub();
    const client = await hub.connect({ era, token: await hub.token() });
    expect(await call(client, 'claude_code', { prompt: 'go' })).toMatchObject({
      isError: true,
      error: expect.stringMatching(/\[INVALID_ARGUMENT\].*cwd/),
    });
    await client.close();
  });

  test('has the toolset that its URL names', async () => {
    const hub = await openEngineHub();
    const token = await hub.token();
    const names = async (query: string): Promise<string[]> => {
      const client = await hub.connect({ era, token, query });
      const { tools } = await client.listTools();
      await client.close();
      return tools.map(({ name }) => name);
    };
    expect(await names('')).toContain('claude_code');
    expect(await names('?toolset=explicit')).toContain('claude_send_message');
  });

  test('does not notice that the hub was restarted between its calls', async () => {
    const hub = await openEngineHub();
    hub.world.model.on('first').reply(text('one'));
    const client = await hub.connect({ era, token: await hub.token() });
    const cwd = hub.world.place.project;
    const { sessionId } = await call(client, 'claude_code', { prompt: 'first', cwd, waitMs: 30_000 });
    await hub.restart();
    const [one, two] = await Promise.all([
      call(client, 'claude_code_check', { action: 'poll', sessionId }),
      call(client, 'claude_code_session', { action: 'list' }),
    ]);
    expect(one).toMatchObject({ status: 'idle', isError: false });
    expect(two).toMatchObject({ isError: false });
    await client.close();
  });

  test('sees the sessions of its own token and of no other', async () => {
    const hub = await openEngineHub();
    hub.world.model.on('mine').reply(text('yours?'));
    const owner = await hub.connect({ era, token: await hub.token('caller', { name: 'one' }) });
    const other = await hub.connect({ era, token: await hub.token('caller', { name: 'two' }) });
    const cwd = hub.world.place.project;
    const { sessionId } = await call(owner, 'claude_code', { prompt: 'mine', cwd, waitMs: 30_000 });
    expect(await call(other, 'claude_code_check', { action: 'poll', sessionId })).toMatchObject({
      isError: true,
      error: expect.stringContaining('SESSION_NOT_FOUND'),
    });
    expect(await call(owner, 'claude_code_check', { action: 'poll', sessionId })).toMatchObject({ isError: false });
    await owner.close();
    await other.close();
  });
});
