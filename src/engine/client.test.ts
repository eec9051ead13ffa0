import { expect, test } from 'vitest';
import type { ConnectedClient } from './requests/approvals.ts';
import { EngineClient } from './client.ts';
import type { Engine } from './engine.ts';
import type { Principal } from './rules/access.ts';
import type { Role } from '../schema/enums.ts';

function principal(id: string, role: Role = 'caller'): Principal {
  return { id, name: id, kind: 'program', role, attended: true };
}

/** An engine that records the calls reaching it, with one session owned by Alice, and clients for Alice and Bob. */
function setUp(role?: Role) {
  const alice: ConnectedClient = { principal: principal('alice'), showsForms: false };
  const bob: ConnectedClient = { principal: principal('bob', role), showsForms: false };
  const reached: string[] = [];
  const note = (what: string): Promise<never> => {
    reached.push(what);
    return Promise.resolve(undefined as never);
  };
  const session = {
    id: 's1',
    owner: alice.principal,
    conversation: { setup: { tools: ['Read', 'mcp__crm__find'] } },
    warnings: [],
    read: () => ({ record: { id: 's1' } }),
    whileInUse: (act: () => Promise<unknown>) => act(),
    interrupt: () => note('interrupt'),
    cancel: () => note('cancel'),
    checkFresh: () => Promise.resolve(),
  };
  const records: unknown[] = [];
  const engine = {
    settings: { toolset: 'compact' },
    sessions: [session],
    finder: {
      elsewhere: [],
      findElsewhere: () => Promise.resolve(undefined),
      peekElsewhere: () => undefined,
      locate: (id: string) =>
        Promise.resolve(
          {
            s1: { kind: 'here', owner: 'alice', session },
            stored: { kind: 'stored', owner: 'alice' },
          }[id],
        ),
      list: () => Promise.resolve({ sessions: [], unreadable: [] }),
      recall: (id: string) => (id === 'stored' ? note('recall') : Promise.resolve(id === 's1' ? session : undefined)),
    },
    tools: ['Read', 'mcp__crm__find'],
    find: (id: string) => (id === 's1' ? session : undefined),
    session: () => session,
    approvals: { checkCallerMayAnswer: () => undefined },
    ownerOf: (id: string) => Promise.resolve({ s1: 'alice', stored: 'alice' }[id]),
    respondAsPerson: () => {
      void note('respond as a person');
      return session;
    },
    startPlaced: () => note('start'),
    reply: async () => {
      await note('reply');
      return session;
    },
    respond: () => {
      void note('respond');
      return session;
    },
    rewind: () => note('rewind'),
    listMachine: (_query: unknown, known: unknown[]) => {
      reached.push(`list of ${String(known.length)}`);
      return Promise.resolve([]);
    },
    work: { list: () => Promise.resolve(['s1', 'stored', 'lost'].map((sessionId) => ({ sessionId }))) },
    audit: { record: (entry: unknown) => void records.push(entry) },
  } as unknown as Engine;
  return { alice: new EngineClient(engine, alice), bob: new EngineClient(engine, bob), reached, records };
}

const DISK = { kind: 'open', options: {} } as const;

/** Every operation that takes a session id. */
const ABOUT_A_SESSION: Readonly<Record<string, (client: EngineClient, id: string) => unknown>> = {
  read: (client, id) => client.read(id),
  reply: (client, sessionId) => client.execute<'reply'>({ kind: 'reply', sessionId, prompt: 'hello', disk: DISK }),
  respond: (client, sessionId) =>
    client.execute<'respond'>({ kind: 'respond', sessionId, requestId: 'r1', answer: { decision: 'allow' } }),
  interrupt: (client, sessionId) => client.execute<'interrupt'>({ kind: 'interrupt', sessionId }),
  cancel: (client, sessionId) => client.execute<'cancel'>({ kind: 'cancel', sessionId }),
  rewind: (client, sessionId) =>
    client.execute<'rewind'>({ kind: 'rewind', sessionId, toUserMessage: 'm1', dryRun: true }),
};

test.each(Object.entries(ABOUT_A_SESSION))('%s is allowed on the principal’s own session', async (_name, act) => {
  const { alice } = setUp();
  await expect((async () => act(alice, 's1'))()).resolves.not.toThrow();
});

test.each(Object.entries(ABOUT_A_SESSION))('%s reports another principal’s session as not found', async (name, act) => {
  const { bob, reached } = setUp();
  const refusal = await (async () => act(bob, 's1'))().then(
    () => 'it went through',
    (error: unknown) => error,
  );
  expect(refusal).toMatchObject({ code: 'SESSION_NOT_FOUND' });
  expect(reached).toEqual([]);
  // The same message as for an unknown id, except for `reply`, which would look for the transcript on disk.
  if (name === 'reply') return;
  const unknown = await (async () => act(bob, 's2'))().catch((error: unknown) => error);
  expect(String(refusal).replaceAll('s1', 's2')).toBe(String(unknown));
});

test.each<[Role, string[]]>([
  ['viewer', ['read']],
  ['approver', ['read', 'respond', 'interrupt', 'cancel']],
  ['admin', ['read', 'reply', 'respond', 'interrupt', 'cancel', 'rewind']],
])('a %s may do this with another principal’s session: %j', async (role, allowed) => {
  for (const [name, act] of Object.entries(ABOUT_A_SESSION)) {
    const { bob, reached } = setUp(role);
    const outcome = await (async () => act(bob, 's1'))().then(
      () => 'done',
      (error: unknown) => (error as { code?: string }).code,
    );
    expect(`${name}: ${String(outcome)}`).toBe(`${name}: ${allowed.includes(name) ? 'done' : 'PERMISSION_DENIED'}`);
    if (name === 'respond' && outcome === 'done') expect(reached).toEqual(['respond as a person']);
  }
});

test('a viewer cannot start a session', async () => {
  const { bob, reached } = setUp('viewer');
  await expect(bob.execute<'start'>({ kind: 'start', prompt: 'hello', options: {} })).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
  });
  expect(reached).toEqual([]);
});

test('lists show only the principal’s own sessions', async () => {
  const { alice, bob, reached } = setUp();
  expect((await alice.list()).sessions).toHaveLength(1);
  expect((await bob.list()).sessions).toEqual([]);
  await alice.listMachine({ limit: 10 });
  await bob.listMachine({ limit: 10 });
  expect(reached).toEqual(['list of 1', 'list of 0']);
});

test('worktrees of another principal’s session are not listed, even if only the store knows their owner', async () => {
  const { alice, bob } = setUp();
  const ids = async (client: EngineClient): Promise<string[]> =>
    (await client.worktrees()).map(({ sessionId }) => sessionId);
  expect(await ids(alice)).toEqual(['s1', 'stored', 'lost']);
  expect(await ids(bob)).toEqual(['lost']);
});

test('the tools of an MCP server are listed only for principals with a session that uses it', () => {
  const { alice, bob } = setUp();
  expect(alice.tools).toEqual(['Read', 'mcp__crm__find']);
  expect(bob.tools).toEqual(['Read']);
});

test('another principal’s session is not recalled', async () => {
  const { bob, reached } = setUp();
  await expect(bob.read('stored')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  expect(reached).toEqual([]);
});

test('the audit log names the calling principal', () => {
  const { bob, records } = setUp();
  bob.record({ kind: 'tool_call', what: 'claude_code', outcome: 'ok' });
  expect(records).toMatchObject([{ who: 'caller', principal: 'bob', what: 'claude_code' }]);
});
