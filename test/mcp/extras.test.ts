/** Resources and prompts as real clients see them, backed by the real Claude Code. */

import { InMemoryTransport, type Client } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createEngine, createServer, type ClaudeCodeEngine } from '../../src/index.ts';
import { parseUri, sessionUri } from '../../src/mcp/resource-updates.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { connectClient, ERAS, type Era } from '../harness/connect-client.ts';
import { createWorld, type LibraryWorld } from '../library/library-world.ts';

async function open(era: Era, toolset: 'compact' | 'explicit' = 'compact'): Promise<OpenServer> {
  const world = await createWorld();
  const engine = createEngine({ toolset }, { env: world.env, cwd: world.place.project });
  onTestFinished(() => engine.close());
  return { world, engine, client: await connected(engine, era) };
}

interface OpenServer {
  readonly world: LibraryWorld;
  readonly engine: ClaudeCodeEngine;
  readonly client: Client;
}

async function connected(engine: ClaudeCodeEngine, era: Era): Promise<Client> {
  const server = createServer(engine);
  onTestFinished(() => server.close());
  const [here, there] = InMemoryTransport.createLinkedPair();
  server.connect(there);
  return connectClient(here, { era });
}

async function read(client: Client, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  const [content] = contents;
  return content && 'text' in content ? content.text : '';
}

describe.each(ERAS)('%s', (era) => {
  test('a session can be read as JSON, transcript and diff, and each change is announced', async () => {
    const { world, engine, client } = await open(era);
    const updated: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void updated.push(params.uri));
    world.model
      .on('make it')
      .reply(tool('Write', { file_path: `${world.place.project}/made.txt`, content: 'hello\n' }), text('It is made.'));
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['claude-code://sessions']);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'claude-code://sessions/{id}',
      'claude-code://sessions/{id}/transcript',
      'claude-code://sessions/{id}/diff',
    ]);
    if (era === 'legacy') await client.subscribeResource({ uri: 'claude-code://sessions' });
    else await client.listen({ resourceSubscriptions: ['claude-code://sessions'] });

    const started = await client.callTool({
      name: 'claude_code',
      arguments: { prompt: 'make it', waitMs: 30_000, permissionMode: 'acceptEdits' },
    });
    const { sessionId: id } = started.structuredContent as { sessionId: string };
    expect(started.structuredContent).toMatchObject({ status: 'idle' });

    expect((await client.listResources()).resources.map(({ uri }) => uri)).toContain(sessionUri(id));
    expect(JSON.parse(await read(client, 'claude-code://sessions'))).toMatchObject({
      sessions: [{ sessionId: id, status: 'idle', title: 'make it' }],
    });
    expect(JSON.parse(await read(client, sessionUri(id)))).toMatchObject({ result: { result: 'It is made.' } });
    const transcript = await read(client, sessionUri(id, 'transcript'));
    expect(transcript).toMatch(/^# make it\n/);
    expect(transcript).toContain('## User\n\nmake it\n');
    expect(transcript).toContain('**Write**');
    expect(transcript).toContain('It is made.');
    expect(await read(client, sessionUri(id, 'diff'))).toContain('+hello');
    await expect.poll(() => updated).toContain('claude-code://sessions');
    // Only the resources subscribed to.
    expect(new Set(updated)).toEqual(new Set(['claude-code://sessions']));

    const stranger = await connected(engine, era);
    await expect(stranger.readResource({ uri: sessionUri(id) })).rejects.toThrow('no resource');
    expect((await stranger.listResources()).resources).toHaveLength(1);
  });

  test('unknown resources and prompts are refused with a helpful message', async () => {
    const { client } = await open(era);
    for (const uri of ['claude-code://sessions/none', 'claude-code://other', 'file:///etc/passwd'])
      await expect(client.readResource({ uri })).rejects.toThrow(`There is no resource ${uri}`);
    await expect(client.getPrompt({ name: 'none' })).rejects.toThrow('delegate, parallel, review');
    await expect(client.getPrompt({ name: 'delegate' })).rejects.toThrow('delegate needs task');
  });
});

test.each(['compact', 'explicit'] as const)('prompts name only tools of the %s toolset', async (toolset) => {
  const { client } = await open('legacy', toolset);
  const { tools } = await client.listTools();
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(['delegate', 'parallel', 'review']);
  for (const { name } of prompts) {
    const given = { task: 'fix the shop', tasks: 'one\ntwo', directory: '/work' };
    const { messages } = await client.getPrompt({ name, arguments: given });
    const words = messages.map(({ content }) => ('text' in content ? content.text : '')).join('\n');
    const named = new Set(words.match(/\bclaude_[a-z_]+/g));
    expect(named.size).toBeGreaterThan(1);
    for (const tool of named) expect(tools.map((listed) => listed.name)).toContain(tool);
    expect(words).toContain('/work');
  }
});

test.each([
  ['claude-code://sessions', { kind: 'sessions' }],
  ['claude-code://sessions/a%2Fb', { kind: 'session', id: 'a/b' }],
  ['claude-code://sessions/x/transcript', { kind: 'transcript', id: 'x' }],
  ['claude-code://sessions/x/other', undefined],
  ['claude-code://sessions/', undefined],
  ['claude-code://sessions/%E0%A4', undefined],
])('parses %s', (uri, address) => {
  expect(parseUri(uri)).toEqual(address);
});
