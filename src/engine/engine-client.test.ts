import { expect, test } from 'vitest';
import type { ConnectedClient } from './approvals.ts';
import { EngineClient } from './engine-client.ts';
import type { Engine } from './engine.ts';
import type { Principal } from './principal.ts';

function principal(id: string): Principal {
  return { id, name: id, kind: 'program', role: 'caller' };
}

/** An engine with one session of Alice's that notes what reaches it, and the facades of Alice and Bob. */
function setUp() {
  const alice: ConnectedClient = { principal: principal('alice'), showsForms: false };
  const bob: ConnectedClient = { principal: principal('bob'), showsForms: false };
  const reached: string[] = [];
  const note = (what: string): Promise<never> => {
    reached.push(what);
    return Promise.resolve(undefined as never);
  };
  const session = {
    id: 's1',
    owner: alice.principal,
    interrupt: () => note('interrupt'),
    cancel: () => note('cancel'),
  };
  const records: unknown[] = [];
  const engine = {
    sessions: [session],
    find: (id: string) => (id === 's1' ? session : undefined),
    start: () => note('start'),
    reply: () => note('reply'),
    respond: () => void note('respond'),
    rewind: () => note('rewind'),
    listMachine: (_query: unknown, known: unknown[]) => {
      reached.push(`list of ${String(known.length)}`);
      return Promise.resolve([]);
    },
    audit: { record: (entry: unknown) => void records.push(entry) },
  } as unknown as Engine;
  return { alice: new EngineClient(engine, alice), bob: new EngineClient(engine, bob), reached, records };
}

/** Everything that names a session. */
const ABOUT_A_SESSION: Readonly<Record<string, (client: EngineClient, id: string) => unknown>> = {
  session: (client, id) => client.session(id),
  reply: (client, id) => client.reply({ sessionId: id, prompt: 'hello', disk: { kind: 'open', options: {} } }),
  respond: (client, id) => client.respond(id, 'r1', { decision: 'allow' }),
  interrupt: (client, id) => client.interrupt(id),
  cancel: (client, id) => client.cancel(id),
  rewind: (client, id) => client.rewind(id, 'm1', true),
};

test.each(Object.entries(ABOUT_A_SESSION))('%s reaches a session of one’s own', async (_name, act) => {
  const { alice } = setUp();
  await expect((async () => act(alice, 's1'))()).resolves.not.toThrow();
});

test.each(Object.entries(ABOUT_A_SESSION))(
  '%s takes another’s session for one that does not exist',
  async (name, act) => {
    const { bob, reached } = setUp();
    const refusal = await (async () => act(bob, 's1'))().then(
      () => 'it went through',
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(reached).toEqual([]);
    // The same words as for an id that never was; a reply to such a one may still be on disk.
    if (name === 'reply') return;
    const unknown = await (async () => act(bob, 's2'))().catch((error: unknown) => error);
    expect(String(refusal).replaceAll('s1', 's2')).toBe(String(unknown));
  },
);

test('lists show what one owns', async () => {
  const { alice, bob, reached } = setUp();
  expect(alice.sessions).toHaveLength(1);
  expect(bob.sessions).toEqual([]);
  await alice.listMachine({ limit: 10 });
  await bob.listMachine({ limit: 10 });
  expect(reached).toEqual(['list of 1', 'list of 0']);
});

test('the audit log names who called', () => {
  const { bob, records } = setUp();
  bob.record({ kind: 'tool_call', what: 'claude_code', outcome: 'ok' });
  expect(records).toMatchObject([{ who: 'caller', principal: 'bob', what: 'claude_code' }]);
});
