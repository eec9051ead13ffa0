import { execFile } from 'node:child_process';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { bundle } from '../harness/bundle.ts';
import { temporaryDirectory } from '../store/stores.ts';
import { startTestHub } from './test-hub.ts';
import type { Report } from './killed-hub.ts';

const root = path.resolve(import.meta.dirname, '../..');
let program = '';

beforeAll(async () => {
  // Inside the repository, so that unbundled packages resolve.
  program = await bundle(path.join(import.meta.dirname, 'killed-hub.ts'), path.join(root, '.build', 'killed-hub'));
}, 60_000);

interface Run {
  readonly file: string;
  readonly reports: Report[];
  readonly signal: string | undefined;
}

async function runHub(killAt: number, phase: 'before' | 'after' | 'none'): Promise<Run> {
  const file = path.join(await temporaryDirectory(), 'hub.db');
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, file, String(killAt), phase], { cwd: root }, (error, stdout, stderr) => {
      if (stderr !== '') return reject(new Error(stderr));
      const reports = stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Report);
      resolve({ file, reports, signal: error?.signal ?? undefined });
    });
  });
}

/** Checks that the hub's next incarnation has everything the killed one had reported. */
async function checkNothingLost({ file, reports }: Run): Promise<void> {
  const store = await openSqliteStore({
    file,
    warn: (line) => {
      throw new Error(line);
    },
  });
  try {
    const hub = await startTestHub(store);
    for (const one of reports) {
      switch (one.kind) {
        case 'session': {
          const session = await hub.engine.finder.recall(one.id);
          expect(session?.conversation.log.nextId).toBeGreaterThanOrEqual(one.nextCursor);
          const events = session?.conversation.log.from(1).events ?? [];
          expect(events.map(({ id }) => id)).toEqual(events.map((_event, index) => index + 1));
          break;
        }
        case 'request':
          expect(await store.request(one.id)).toMatchObject({ id: one.id, sessionId: one.session });
          break;
        case 'decision':
          expect(await store.request(one.id)).toMatchObject({ outcome: { decision: one.decision } });
          break;
        case 'result': {
          const { events } = await store.events(one.session, { limit: 1000 });
          const results = events.filter(({ type }) => type === 'result');
          expect(results.filter(({ data }) => JSON.stringify(data).includes(one.text))).toHaveLength(1);
          break;
        }
        case 'writes':
          break;
      }
    }
    // Open requests can be answered, once.
    const { items } = await store.inbox({ limit: 10 });
    for (const { id, sessionId } of items) {
      hub.engine.respond(sessionId, id, { decision: 'deny', message: 'no' });
      expect(() => hub.engine.respond(sessionId, id, { decision: 'allow' })).toThrow(`No open request ${id}`);
    }
    await hub.journal.stored();
    expect((await store.inbox({ limit: 10 })).items).toEqual([]);
    await hub.journal.close(1_000);
  } finally {
    await store.close();
  }
}

test('a hub killed at any of its writes remembers everything it has reported', async () => {
  const whole = await runHub(0, 'none');
  const { count } = whole.reports.find((one) => one.kind === 'writes') ?? { count: 0 };
  expect(count).toBeGreaterThan(5);
  await checkNothingLost(whole);
  const kills = Array.from({ length: count }, (_none, index) => index + 1).flatMap((at) =>
    (['before', 'after'] as const).map((phase) => [at, phase] as const),
  );
  let died = 0;
  for (const [at, phase] of kills) {
    const run = await runHub(at, phase);
    if (run.signal === 'SIGKILL') died++;
    await checkNothingLost(run);
  }
  // How changes are batched depends on timing, so not every run reaches the last writes.
  expect(died).toBeGreaterThan(kills.length / 2);
}, 180_000);
