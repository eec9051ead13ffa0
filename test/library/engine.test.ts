import { InMemoryTransport, type Client } from '@modelcontextprotocol/client';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createEngine, createServer, SettingsError, type ClaudeCodeEngine } from '../../src/index.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { allowOnce, SlowPerson } from '../e2e/forms-support.ts';
import { connectClient, ERAS } from '../harness/connect-client.ts';
import type { Json } from '../harness/json.ts';
import { createWorld, type LibraryWorld } from './library-world.ts';

function engineIn({ env, place }: LibraryWorld): ClaudeCodeEngine {
  const engine = createEngine({ maxSessions: 2 }, { env, cwd: place.project });
  onTestFinished(() => engine.close());
  return engine;
}

test('a session runs in-process to its result, and closing the engine also ends a running command', async () => {
  const world = await createWorld();
  world.model
    .on('make it')
    .reply(tool('Bash', { command: 'echo "$CLAUDE_CODE_MCP_MAX_SESSIONS" > made.txt' }), text('made'));
  const waiting = 'touch begun; until [ -f never ]; do sleep 1; done';
  world.model.on('work forever').reply(tool('Bash', { command: waiting }), text('never said'));
  const engine = engineIn(world);

  const options = { permissionMode: 'default' } as const;
  const { sessionId } = await engine.execute({ kind: 'start', prompt: 'make it', options });
  const allow = async (): Promise<void> => {
    const { requests } = await engine.untilAttention(sessionId);
    expect(requests).toMatchObject([{ kind: 'permission', ask: { toolName: 'Bash' } }]);
    const requestId = requests[0]!.id;
    await engine.execute({ kind: 'respond', sessionId, requestId, answer: { decision: 'allow' } });
  };
  await allow();
  const { record } = await engine.untilAttention(sessionId);
  expect(record).toMatchObject({ state: 'idle', turn: { text: 'made', isError: false } });
  // Servers started by a session inherit the program's settings.
  expect(await readFile(path.join(world.place.project, 'made.txt'), 'utf8')).toBe('2\n');

  const disk = { kind: 'open', options: {} } as const;
  await engine.execute({ kind: 'reply', sessionId, prompt: 'work forever', disk });
  await allow();
  await expect.poll(() => existsSync(path.join(world.place.project, 'begun')), { timeout: 15_000 }).toBe(true);
  // A call that gives up gets what there is.
  expect((await engine.untilAttention(sessionId, AbortSignal.abort())).record.state).toBe('running');
  await engine.close();
  await engine.close();

  expect((await engine.read(sessionId)).record.cancellation).toMatchObject({ source: 'shutdown' });
  expect(await world.survivors()).toEqual([]);
  const audit = await readFile(path.join(world.place.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8');
  expect(audit).toContain('"decision"');
  await expect(engine.execute({ kind: 'start', prompt: 'more', options: {} })).rejects.toMatchObject({
    code: 'CANCELLED',
  });
});

test.each(ERAS)(
  'two %s clients of one engine have separate sessions, and a form goes to the owner of its session',
  async (era) => {
    const world = await createWorld();
    world.model.on('make it').reply(tool('Bash', { command: 'touch made.txt' }), text('made'));
    const engine = engineIn(world);
    const people = { owner: new SlowPerson(), other: new SlowPerson() };
    const connect = async ({ form }: SlowPerson): Promise<Client> => {
      const [here, there] = InMemoryTransport.createLinkedPair();
      createServer(engine).connect(there);
      const client = await connectClient(here, { era, form });
      onTestFinished(() => client.close());
      return client;
    };
    const [owner, other] = [await connect(people.owner), await connect(people.other)];
    const call = async (client: Client, name: string, args: Record<string, unknown>): Promise<Json> =>
      (await client.callTool({ name, arguments: args })).structuredContent;

    const { sessionId } = await call(owner, 'claude_code', { prompt: 'make it' });
    const waiting = call(owner, 'claude_code_check', { action: 'wait', sessionId, waitMs: 40_000 });
    // The other client calls last and finds nothing, since it does not own the session.
    const polled = await call(other, 'claude_code_check', { action: 'poll', sessionId });
    expect(polled.error).toContain('SESSION_NOT_FOUND');
    expect(await call(other, 'claude_code_session', { action: 'list' })).toMatchObject({ sessions: [] });
    const { answer } = await people.owner.nextForm();
    expect((await call(other, 'claude_code_session', { action: 'cancel', sessionId })).error).toContain('NOT_FOUND');
    answer(allowOnce);
    expect(await waiting).toMatchObject({ status: 'idle', result: { result: 'made' } });
    expect(people.owner.shown).toHaveLength(1);
    expect(people.other.shown).toEqual([]);
  },
);

test('a form lost with its client leaves the request to waiting callers; closing the server ends every process', async () => {
  const world = await createWorld();
  world.model.on('say hello').reply(text('hello'));
  world.model.on('make it').reply(tool('Bash', { command: 'touch made.txt' }), text('made'));
  const server = createServer(engineIn(world));
  const person = new SlowPerson();
  const connect = async (form?: SlowPerson['form']): Promise<Client> => {
    const [here, there] = InMemoryTransport.createLinkedPair();
    server.connect(there);
    const client = await connectClient(here, { era: 'legacy', form });
    onTestFinished(() => client.close());
    return client;
  };
  const [first, second] = [await connect(person.form), await connect()];
  const started = await first.callTool({ name: 'claude_code', arguments: { prompt: 'say hello', waitMs: 40_000 } });
  expect(started.structuredContent).toMatchObject({ status: 'idle', result: { result: 'hello' } });
  const { sessionId } = started.structuredContent as Json;
  await first.callTool({ name: 'claude_code_reply', arguments: { sessionId, prompt: 'make it' } });
  await person.nextForm();
  const waiting = second.callTool({ name: 'claude_code_check', arguments: { action: 'wait', sessionId } });
  await first.close();
  const { structuredContent } = await waiting;
  expect(structuredContent).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
  expect((structuredContent as Json).actions[0]).not.toHaveProperty('askedPerson');

  await server.close();
  await server.close();
  expect(await world.survivors()).toEqual([]);
});

test.each([
  [{ maxSessions: 0 }, 'maxSessions is "0"; it takes a whole number from 1 to 1000.'],
  [{ toolset: 'other' }, 'toolset is "other"; it takes compact or explicit.'],
  [{ allowedDirs: [] }, 'it contains no directory'],
  [{ denyOptions: ['envv'] }, 'which is not an option'],
  [{ maxSession: 3 }, 'maxSession is not a setting; did you mean maxSessions?'],
])('invalid settings are refused: %j', (settings, words) => {
  expect(() => createEngine(settings as never, { env: {} })).toThrow(SettingsError);
  expect(() => createEngine(settings as never, { env: {} })).toThrow(words);
});

test('the program’s settings override the environment, which overrides the defaults', async () => {
  const { env, place } = await createWorld();
  const variables = { ...env, CLAUDE_CODE_MCP_MAX_SESSIONS: '3', CLAUDE_CODE_MCP_MAX_TURNS: '7' };
  const engine = createEngine(
    { maxSessions: 5, resumeSecret: 's3cret', allowBypass: true, denyOptions: ['env', 'settings'] },
    { env: variables, cwd: place.project },
  );
  onTestFinished(() => engine.close());
  expect(engine.settings).toMatchObject({
    maxSessions: 5,
    maxTurns: 7,
    resumeSecret: 's3cret',
    allowBypass: true,
    denyOptions: ['env', 'settings'],
    approvals: 'auto',
  });
});
