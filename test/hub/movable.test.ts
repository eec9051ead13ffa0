import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DomainError } from '../../src/errors/errors.ts';
import type { SessionOptions } from '../../src/schema/session-options.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub, type TestHub } from './test-hub.ts';

let root: string;

beforeAll(async () => {
  root = await realpath(await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-movable-')));
  for (const directory of ['shared/project', 'own', 'shared-not'])
    await mkdir(path.join(root, directory), { recursive: true });
  await symlink(path.join(root, 'shared', 'project'), path.join(root, 'own', 'into-shared'));
  await symlink(path.join(root, 'own'), path.join(root, 'shared', 'out-of-shared'));
});

afterAll(() => rm(root, { recursive: true }));

const startHere = (store: Store): Promise<TestHub> =>
  startTestHub(store, { sharedWorkspace: path.join(root, 'shared') });

async function isStoredAsMovable(store: Store, { engine }: TestHub, id: string): Promise<boolean> {
  await engine.stored();
  return (await store.session(id))?.movable === true;
}

const CASES: [what: string, movable: boolean, cwd: string, options: SessionOptions][] = [
  ['in the shared directory', true, 'shared/project', {}],
  ['behind a symlink into it', true, 'own/into-shared', {}],
  ['in another directory', false, 'own', {}],
  ['in a directory that only shares its prefix', false, 'shared-not', {}],
  ['behind a symlink out of it', false, 'shared/out-of-shared', {}],
  ['without a transcript', false, 'shared/project', { persistSession: false }],
  ['with its own variable', false, 'shared/project', { env: { API_TOKEN: 'hunter2' } }],
  ['with its own settings', false, 'shared/project', { settings: { model: 'x' } }],
  ['with its own MCP servers', false, 'shared/project', { mcpServers: { one: { type: 'http', url: 'http://one' } } }],
];

test.each(CASES)('a session %s: movable is %s', async (_what, movable, cwd, options) => {
  const store = await STORES.sqlite();
  const hub = await startHere(store);
  const session = await hub.engine.start({ prompt: 'go', options: { ...options, cwd: path.join(root, cwd) } });
  expect(session.mobility.movable).toBe(movable);
  expect(await isStoredAsMovable(store, hub, session.id)).toBe(movable);
});

test('an unmovable session remains so after a restart, until its transcript is repaired', async () => {
  const store = await STORES.sqlite();
  const hub = await startHere(store);
  const { id } = await hub.engine.start({ prompt: 'go', options: { cwd: path.join(root, 'shared') } });
  expect(await isStoredAsMovable(store, hub, id)).toBe(true);
  hub.engine.session(id).mobility.stays('its transcript is not where others could read it');
  expect(await isStoredAsMovable(store, hub, id)).toBe(false);
  hub.kill();
  const next = await startHere(store);
  await next.engine.finder.recall(id);
  expect(await isStoredAsMovable(store, next, id)).toBe(false);
  next.engine.session(id).mobility.mayMoveAgain();
  expect(await isStoredAsMovable(store, next, id)).toBe(true);
});

test('a session that becomes unmovable counts as movable until the store has recorded the change', async () => {
  const store = await STORES.sqlite();
  let isAway = false;
  const watch = (): void => {
    if (isAway) throw new DomainError('UNAVAILABLE', 'the store is away');
  };
  const place = { sharedWorkspace: path.join(root, 'shared') };
  const hub = await startTestHub(store, { watch, warn: () => undefined, ...place });
  const options = { cwd: path.join(root, 'shared') };
  const [kept, lost] = [
    await hub.engine.start({ prompt: 'go', options }),
    await hub.engine.start({ prompt: 'go', options }),
  ];
  await hub.engine.stored();
  isAway = true;
  for (const session of [kept, lost]) session.mobility.stays('its transcript is not stored');
  await expect(hub.engine.stored()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(hub.engine.fleet.lent).toEqual([kept.id, lost.id]);

  // Another hub takes one of them over before this hub can reach the store again.
  await store.releaseLease(hub.by);
  const { hub: other, fence } = await store.acquireLease('another', 15_000, { host: 'another' });
  expect(await store.claimSessions({ hub: other, fence }, [lost.id])).toHaveLength(1);
  await store.renewLease(hub.by, 15_000, {});
  await hub.journal.checkOwned(hub.engine.fleet.lent);
  expect(hub.engine.find(lost.id)).toBeUndefined();
  isAway = false;
  await eventually(() => hub.engine.stored()?.then(() => true), { what: 'all pending writes are stored' });
  kept.mobility.stays('its transcript is still not stored');
  await eventually(() => hub.engine.fleet.lent.length === 0, { what: 'the other session is stored as unmovable' });
});

test('no session is movable without a shared directory', async () => {
  const store = await STORES.sqlite();
  const { engine } = await startTestHub(store);
  expect((await engine.start({ prompt: 'go', options: { cwd: path.join(root, 'shared') } })).mobility.movable).toBe(
    false,
  );
});
