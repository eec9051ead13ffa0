/** The operator's rules may change between two incarnations of a hub, and differ between connections. */

import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import type { Answer } from '../../src/schema/commands.ts';
import type { ConnectedClient } from '../../src/engine/requests/approvals.ts';
import { LOCAL } from '../../src/engine/rules/access.ts';
import type { Session } from '../../src/engine/session/session.ts';
import type { StartRequest } from '../../src/engine/engine.ts';
import type { ReplyRequest } from '../../src/engine/session/replies.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub, type TestHub } from './test-hub.ts';

const CWD = process.cwd();
const SRC = path.join(CWD, 'src');

let store: Store;
let hub: TestHub;

beforeEach(async () => {
  store = await STORES.sqlite();
  hub = await startTestHub(store);
});

async function restart(...argv: string[]): Promise<void> {
  await hub.journal.stored();
  hub.kill();
  hub = await startTestHub(store, { argv });
}

async function atRest(options: StartRequest['options'] = {}): Promise<Session> {
  const session = await hub.engine.start({ prompt: 'fix it', options });
  (await hub.agent()).answer('It is fixed.');
  return session;
}

async function waiting(options: StartRequest['options'] = {}, by?: ConnectedClient): Promise<Session> {
  const session = await hub.engine.start({ prompt: 'fix it', options, ...(by && { by }) });
  void (await hub.agent()).ask('r1', 'Bash', { command: 'npm test' });
  await eventually(() => session.requests.length === 1, { what: 'the request is open' });
  return session;
}

async function recalled({ id }: Session): Promise<Session> {
  const session = await hub.engine.finder.recall(id);
  if (!session) throw new Error('the hub has forgotten the session');
  return session;
}

async function reply({ id }: Session, more: Partial<ReplyRequest> = {}): Promise<Session> {
  await hub.engine.finder.recall(id);
  return hub.engine.reply({ sessionId: id, prompt: 'go on', disk: { kind: 'open', options: {} }, ...more });
}

/** A connection by the user with its own rules and variables. */
function connection(
  settings: Partial<TestHub['engine']['settings']>,
  baseEnv: NodeJS.ProcessEnv = {},
): ConnectedClient {
  const rules = hub.engine.rulesFor({ settings: { ...hub.engine.settings, ...settings }, cwd: CWD, baseEnv });
  return { principal: LOCAL, rules, showsForms: false };
}

const TOKEN = { API_TOKEN: 'secret' };

/** A session at rest whose decision could not be passed on, because a variable is missing. */
async function allowedWhileAway(answer: Answer): Promise<Session> {
  const session = await waiting({}, connection({}, TOKEN));
  await restart();
  const after = await recalled(session);
  hub.engine.respond(session.id, 'r1', answer);
  await eventually(() => after.atRest, { what: 'the session is at rest' });
  expect(after.conversation.result?.text).toContain('API_TOKEN');
  expect(hub.agents).toEqual([]);
  return after;
}

test('a session’s rules are narrowed to the hub’s current ones', async () => {
  const session = await atRest({ maxTurns: 50 });
  await restart('--approvals', 'human', '--allowed-dirs', SRC, '--deny-options', 'env', '--max-turns', '5');
  const after = await recalled(session);
  expect(after.rules.settings).toMatchObject({ approvals: 'human', allowedDirs: [SRC], denyOptions: ['env'] });
  expect(after.options.maxTurns).toBe(5);
  await expect(reply(session)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
});

test('a session keeps the rules it started with if the hub allows more later', async () => {
  await restart('--approvals', 'human', '--allowed-dirs', CWD, '--deny-options', 'env');
  const session = await atRest();
  await restart('--allow-bypass');
  expect((await recalled(session)).rules.settings).toMatchObject({
    approvals: 'human',
    allowedDirs: [CWD],
    denyOptions: ['env'],
    allowBypass: false,
  });
});

test('pre-approved tools are not restored when only a person may approve', async () => {
  const session = await waiting({ allowedTools: ['Bash'] });
  await restart('--approvals', 'human');
  await expect(reply({ id: session.id } as Session, { whenBusy: 'queue' })).rejects.toThrow();
  hub.engine.respondAsPerson(session.id, 'r1', { decision: 'allow' }, LOCAL);
  const after = await recalled(session);
  await eventually(() => after.atRest, { what: 'the session is at rest' });
  expect(after.conversation.result?.text).toContain('allowedTools');
  expect(hub.agents).toEqual([]);
  await expect(reply(session)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
});

test('options that a session needs again are checked against the rules, and no others are accepted', async () => {
  const options = { env: { API_TOKEN: 'secret' }, settings: { model: 'opus' } };
  const session = await atRest(options);
  await restart();
  const bring = (brought: StartRequest['options']): Promise<Session> =>
    reply(session, { disk: { kind: 'open', options: brought } });
  await expect(
    bring({ ...options, settings: { permissions: { defaultMode: 'bypassPermissions' } } }),
  ).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  await bring({ ...options, env: { API_TOKEN: 'secret', NODE_OPTIONS: '-r x' }, mcpServers: { x: { command: 'x' } } });
  expect((await recalled(session)).options).toMatchObject({ env: { API_TOKEN: 'secret' } });
  expect((await recalled(session)).options).not.toHaveProperty('mcpServers');
  expect((await recalled(session)).options.env).not.toHaveProperty('NODE_OPTIONS');
});

test.each<[string, string[], Answer]>([
  ['callers no longer decide', ['--approvals', 'human'], { decision: 'allow' }],
  [
    'callers may no longer pre-approve tools',
    ['--deny-options', 'allowedTools'],
    {
      decision: 'allow',
      updatedPermissions: [
        { type: 'addRules', rules: [{ toolName: 'Bash' }], behavior: 'allow', destination: 'session' },
      ],
    },
  ],
  [
    'the directory it grants is no longer allowed',
    ['--allowed-dirs', CWD],
    {
      decision: 'allow',
      updatedPermissions: [{ type: 'addDirectories', directories: ['/'], destination: 'session' }],
    },
  ],
  [
    'the changed path is no longer allowed',
    ['--allowed-dirs', CWD],
    { decision: 'allow', updatedInput: { command: 'npm test', path: '/elsewhere' } },
  ],
])('an earlier permission is requested again if %s', async (_what, argv, answer) => {
  const session = await allowedWhileAway(answer);
  await restart(...argv);
  const again = await reply(session, { by: connection({}, TOKEN) });
  const agent = await hub.agent();
  expect(agent.prompts[0]).toContain('was allowed');
  void agent.ask('r2', 'Bash', { command: 'npm test' });
  await eventually(() => again.findRequest('r2'), { what: 'the permission is requested again' });
  await hub.engine.stored();
  expect(await store.grants(session.id)).toEqual([]);
});

test('an earlier permission still holds after a restart with the same rules', async () => {
  const session = await allowedWhileAway({ decision: 'allow' });
  await restart('--max-sessions', '3');
  await reply(session, { by: connection({}, TOKEN) });
  const decision = await (await hub.agent()).ask('r2', 'Bash', { command: 'npm test' });
  expect(decision).toEqual({ behavior: 'allow' });
});

test('a decision is passed on as soon as one of the owner’s connections brings the missing variable', async () => {
  const session = await allowedWhileAway({ decision: 'allow' });
  const stranger = { ...LOCAL, id: 'token:x', kind: 'token' as const };
  hub.engine.connected({ ...connection({}, TOKEN), principal: stranger });
  hub.engine.connected(connection({}));
  hub.engine.connected(connection({ sandbox: true }, TOKEN));
  await hub.engine.stored();
  expect(hub.agents).toEqual([]);
  hub.engine.connected(connection({}, TOKEN));
  const agent = await hub.agent();
  expect(agent.launch.env).toMatchObject(TOKEN);
  expect(agent.prompts[0]).toContain('was allowed');
  expect(await agent.ask('r2', 'Bash', { command: 'npm test' })).toEqual({ behavior: 'allow' });
  agent.answer('All done.');
  expect(session.conversation.result?.text).toBe('All done.');
});

test('a decision is also passed on to a session that is no longer loaded, after another restart', async () => {
  const session = await allowedWhileAway({ decision: 'allow' });
  await restart();
  expect(hub.engine.find(session.id)).toBeUndefined();
  hub.engine.connected(connection({}, TOKEN));
  expect((await hub.agent()).prompts[0]).toContain('was allowed');
});

test('an existing connection provides the missing variable when the decision is made', async () => {
  const session = await waiting({}, connection({}, TOKEN));
  await restart();
  await recalled(session);
  const disconnect = hub.engine.connected(connection({}, { API_TOKEN: 'of one that has gone' }));
  disconnect();
  hub.engine.connected(connection({}, TOKEN));
  hub.engine.respond(session.id, 'r1', { decision: 'allow' });
  expect((await hub.agent()).launch.env).toMatchObject(TOKEN);
});

test('a queued message does not start a process for a session that waits without one', async () => {
  const session = await waiting();
  await restart();
  await expect(reply(session, { whenBusy: 'queue' })).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  expect(hub.agents).toEqual([]);
});

test('a person’s answer cannot grant what the operator has disabled', async () => {
  const session = await waiting();
  const bypass = { type: 'setMode', mode: 'bypassPermissions', destination: 'session' } as const;
  expect(() =>
    hub.engine.respondAsPerson(session.id, 'r1', { decision: 'allow', updatedPermissions: [bypass] }, LOCAL),
  ).toThrow(/ALLOW_BYPASS/);
});

test.each<[string, StartRequest['options'], Partial<TestHub['engine']['settings']>]>([
  ['works in more directories', {}, { allowedDirs: [CWD] }],
  ['has pre-approved tools', { allowedTools: ['Bash'] }, { approvals: 'human' }],
  ['has its own MCP servers', { mcpServers: { x: { command: 'x' } } }, { denyOptions: ['mcpServers'] }],
])('a connection with narrower rules cannot drive a session that %s', async (_name, options, narrower) => {
  const session = await atRest(options);
  const by = connection(narrower);
  await expect(reply(session, { by })).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  await expect(reply(session, { by, fork: true })).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  expect(await reply(session, { by: connection({}) })).toBe(session);
});

test('a fork has the rules of both the session and the connection that forks it', async () => {
  const session = await atRest();
  const fork = await reply(session, { by: connection({ approvals: 'human', denyOptions: ['env'] }), fork: true });
  expect(fork.rules.settings).toMatchObject({ approvals: 'human', denyOptions: ['env'] });
  expect(session.rules.settings.approvals).toBe('auto');
});
