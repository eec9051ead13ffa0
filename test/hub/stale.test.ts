import { execFileSync } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { ApiError, ApiRequest } from '../../src/schema/api.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES, temporaryDirectory } from '../store/stores.ts';
import { APPROVER, openApi, VIEWER, type ApiWorld } from './api-world.ts';
import { ANN, TestClient } from './test-client.ts';
import { startTestHub, type TestHub } from './test-hub.ts';

const HOUR = 3_600_000;
const NEVER_EXPIRE = ['--permission-timeout-ms', '0', '--running-session-max-ms', '2000000000'];

interface World {
  readonly store: Store;
  readonly hub: TestHub;
  readonly api: ApiWorld;
  readonly repo: string;
  readonly sessionId: string;
  get(requestId: string): Promise<ApiRequest>;
  answer(requestId: string, body: object): Promise<{ status: number; json: ApiError }>;
}

function git(repo: string, ...args: string[]): void {
  execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.org', ...args], { cwd: repo, stdio: 'ignore' });
}

async function openWorld(given?: { store: Store; repo: string; sessionId: string }): Promise<World> {
  const store = given?.store ?? (await STORES.sqlite());
  const repo = given?.repo ?? path.join(await temporaryDirectory(), 'repo');
  if (!given) {
    await mkdir(repo);
    git(repo, 'init', '--quiet', '--initial-branch', 'main');
    await writeFile(path.join(repo, 'a.txt'), 'before\n');
    git(repo, 'add', '.');
    git(repo, 'commit', '--quiet', '--message', 'first');
  }
  const hub = await startTestHub(store, { argv: NEVER_EXPIRE });
  const sessionId =
    given?.sessionId ?? (await new TestClient(hub, ANN).start({ prompt: 'go', options: { cwd: repo } })).id;
  const api = await openApi({ store, hub });
  return {
    ...{ store, hub, api, repo, sessionId },
    get: async (id) => (await api.call(VIEWER, 'GET', `/api/v1/requests/${id}`)).json,
    answer: (id, body) => api.call(APPROVER, 'POST', `/api/v1/requests/${id}/answer`, { body }),
  };
}

async function ask(
  { hub }: Pick<World, 'hub'>,
  id: string,
  toolName: string,
  input: Record<string, unknown>,
): Promise<{ decision: Promise<{ behavior: string }> }> {
  const decision = (await hub.agent()).ask(id, toolName, input);
  await eventually(() => hub.engine.sessions[0]?.findRequest(id), { what: `${id} is open` });
  await hub.engine.stored();
  return { decision };
}

test('a request that is as it was is allowed at once, however its session was used meanwhile', async () => {
  const world = await openWorld();
  const { decision } = await ask(world, 'r1', 'Edit', { file_path: 'a.txt', old_string: 'before', new_string: 'x' });
  await writeFile(path.join(world.repo, 'b.txt'), 'another file\n');
  world.hub.clock.advance(23 * HOUR);
  expect(await world.get('r1')).not.toHaveProperty('stale');
  expect((await world.answer('r1', { decision: 'allow' })).status).toBe(200);
  expect(await decision).toMatchObject({ behavior: 'allow' });
});

test('an old request is allowed only with the digest of what makes it old, and denied without', async () => {
  const world = await openWorld();
  const [{ decision }] = [
    await ask(world, 'r1', 'Bash', { command: 'make deploy' }),
    await ask(world, 'r2', 'Bash', { command: 'make clean' }),
  ];
  world.hub.clock.advance(3 * 24 * HOUR);
  const { stale } = await world.get('r1');
  expect(stale).toMatchObject({ ageMs: 3 * 24 * HOUR, changes: [{ what: 'age', text: 'it was asked 3 days ago' }] });
  const refused = await world.answer('r1', { decision: 'allow' });
  expect(refused).toMatchObject({ status: 409, json: { error: { code: 'stale' }, stale } });
  expect(refused.json.error.message).toContain(stale!.digest);
  const other = (await world.get('r2')).stale!.digest;
  expect((await world.answer('r1', { decision: 'allow', confirm: other })).status).toBe(409);
  expect((await world.answer('r2', { decision: 'deny' })).status).toBe(200);
  // A minute later it is the same question.
  world.hub.clock.advance(60_000);
  expect((await world.answer('r1', { decision: 'allow', confirm: stale!.digest })).status).toBe(200);
  expect(await decision).toMatchObject({ behavior: 'allow' });
});

test('what has changed is named, and another change needs another look', async () => {
  const world = await openWorld();
  const { repo } = world;
  await ask(world, 'edit', 'Edit', { file_path: 'a.txt', old_string: 'before', new_string: 'x' });
  await ask(world, 'write', 'Write', { file_path: path.join(repo, 'new.txt'), content: 'x' });
  await ask(world, 'bash', 'Bash', { command: 'git push' });
  const changes = async (id: string) => (await world.get(id)).stale?.changes;
  await writeFile(path.join(repo, 'a.txt'), 'somebody was here\n');
  await writeFile(path.join(repo, 'new.txt'), 'somebody was here\n');
  expect(await changes('edit')).toEqual([{ what: 'file', text: 'a.txt has changed' }]);
  expect(await changes('write')).toMatchObject([
    { what: 'file', text: expect.stringContaining('and now does') as string },
  ]);
  expect(await changes('bash')).toBeUndefined();
  const first = (await world.get('edit')).stale!.digest;
  await rm(path.join(repo, 'a.txt'));
  expect(await world.answer('edit', { decision: 'allow', confirm: first })).toMatchObject({
    status: 409,
    json: { stale: { changes: [{ what: 'file', text: 'a.txt no longer exists' }] } },
  });
  git(repo, 'checkout', '--quiet', '-b', 'feature');
  expect(await changes('bash')).toEqual([{ what: 'branch', text: 'main was checked out, now feature is' }]);
  expect(await changes('edit')).toMatchObject([{ what: 'file' }, { what: 'branch' }]);
  await rename(repo, `${repo}-aside`);
  await mkdir(repo);
  expect(await changes('bash')).toMatchObject([
    { what: 'directory', text: `${repo} is not the directory that it was` },
    { what: 'branch', text: 'main was checked out, now nothing is' },
  ]);
  expect((await world.answer('bash', { decision: 'allow' })).status).toBe(409);
});

test('a calling tool is refused with INVALID_ARGUMENT and the digest, and repeats its answer with it', async () => {
  const world = await openWorld();
  const { decision } = await ask(world, 'r1', 'Bash', { command: 'make deploy' });
  git(world.repo, 'checkout', '--quiet', '-b', 'feature');
  const ann = new TestClient(world.hub, ANN);
  const refusal = await ann.respond(world.sessionId, 'r1', { decision: 'allow' }).then(
    () => undefined,
    (error: unknown) => error as { code: string; message: string },
  );
  expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT' });
  const [, confirm] = /main was checked out, now feature is.*confirm: "(\w+)"/.exec(refusal!.message)!;
  await ann.respond(world.sessionId, 'r1', { decision: 'allow', confirm: confirm! });
  expect(await decision).toMatchObject({ behavior: 'allow' });
});

test('what changed while the hub was away counts, and what was confirmed is granted as it is now', async () => {
  const first = await openWorld();
  const edit = { file_path: 'a.txt', old_string: 'before', new_string: 'x' };
  await ask(first, 'r1', 'Edit', edit);
  first.hub.kill();
  await writeFile(path.join(first.repo, 'a.txt'), 'before and more\n');
  const next = await openWorld(first);
  const { stale } = await next.get('r1');
  expect(stale).toMatchObject({ changes: [{ what: 'file' }] });
  expect((await next.answer('r1', { decision: 'allow' })).status).toBe(409);
  expect((await next.answer('r1', { decision: 'allow', confirm: stale!.digest })).status).toBe(200);
  const repeated = (await next.hub.agent()).ask('r2', 'Edit', edit);
  expect(await repeated).toMatchObject({ behavior: 'allow' });
});

test.each(['sqlite', 'postgres'] as const)('the hub that runs the session looks, whoever asks (%s)', async (kind) => {
  const store = await STORES[kind]();
  const options = { warn: () => undefined, isFleet: true, argv: NEVER_EXPIRE };
  const [a, b] = [
    await startTestHub(store, { ...options, hub: 'a' }),
    await startTestHub(store, { ...options, hub: 'b' }),
  ];
  const { id: sessionId } = await new TestClient(a, ANN).start({ prompt: 'go', options: { cwd: process.cwd() } });
  const { decision } = await ask({ hub: a }, 'r1', 'Bash', { command: 'ls' });
  // Its clock alone has moved.
  a.clock.advance(48 * HOUR);
  const there = await openApi({ store, hub: b });
  const answer = (body: object) => there.call(APPROVER, 'POST', '/api/v1/requests/r1/answer', { body });
  const { stale } = (await there.call(VIEWER, 'GET', '/api/v1/requests/r1')).json as ApiRequest;
  expect(stale).toMatchObject({ changes: [{ what: 'age', text: 'it was asked 2 days ago' }] });
  expect(await answer({ decision: 'allow' })).toMatchObject({ status: 409, json: { error: { code: 'stale' }, stale } });
  expect((await answer({ decision: 'allow', confirm: stale!.digest })).status).toBe(200);
  expect(await decision).toMatchObject({ behavior: 'allow' });
  expect(sessionId).toBeTruthy();
});
