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
  test('gets forms and progress, survives a restart, and sees only the sessions of its own token', async () => {
    const hub = await openEngineHub();
    hub.world.model.on('go').reply(tool('Bash', { command: 'touch made.txt', description: 'make' }), text('made it'));
    const progress: unknown[] = [];
    const person = new SlowPerson();
    const token = await hub.token('caller', { name: 'one' });
    const client = await hub.connect({ era, token, form: person.form });
    const cwd = hub.world.place.project;
    const answer = client.callTool(
      { name: 'claude_code', arguments: { prompt: 'go', cwd, waitMs: 40_000 } },
      { timeout: 50_000, onprogress: (one) => progress.push(one) },
    );
    const form = await person.nextForm();
    expect(form.request.message).toContain('touch made.txt');
    form.answer(allowOnce);
    const done = (await answer).structuredContent as Json;
    expect(done).toMatchObject({ status: 'idle', result: { result: 'made it' } });
    expect(existsSync(path.join(cwd, 'made.txt'))).toBe(true);
    expect(progress.length).toBeGreaterThan(0);

    const other = await hub.connect({ era, token: await hub.token('caller', { name: 'two' }) });
    await hub.restart();
    const poll = { action: 'poll', sessionId: done.sessionId };
    const [polled, listed] = await Promise.all([
      call(client, 'claude_code_check', poll),
      call(client, 'claude_code_session', { action: 'list' }),
    ]);
    expect(polled).toMatchObject({ status: 'idle', isError: false });
    expect(listed).toMatchObject({ isError: false, sessions: [{ sessionId: done.sessionId }] });
    expect(await call(other, 'claude_code_check', poll)).toMatchObject({
      isError: true,
      error: expect.stringContaining('SESSION_NOT_FOUND'),
    });
    await client.close();
    await other.close();
  });

  test('must name a directory, and gets the toolset named in its URL', async () => {
    const hub = await openEngineHub();
    const token = await hub.token();
    const client = await hub.connect({ era, token });
    expect(await call(client, 'claude_code', { prompt: 'go' })).toMatchObject({
      isError: true,
      error: expect.stringMatching(/\[INVALID_ARGUMENT\].*cwd/),
    });
    const explicit = await hub.connect({ era, token, query: '?toolset=explicit' });
    const names = async (one: Client): Promise<string[]> => (await one.listTools()).tools.map(({ name }) => name);
    expect(await names(client)).toContain('claude_code');
    expect(await names(explicit)).toContain('claude_send_message');
    await client.close();
    await explicit.close();
  });
});
