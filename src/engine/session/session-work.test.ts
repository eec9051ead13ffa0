import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import { fullWork, workReport, type ToolCall } from '../../workspace/report/work-report.ts';
import type { Mark, Workspace } from '../../workspace/workspace.ts';
import { deferred, type Deferred } from '../clock.ts';
import type { Session } from './session.ts';
import { SessionWork, type OpenedWorkspace } from './session-work.ts';

const CALL: ToolCall = {
  tool: 'Edit',
  input: { file_path: '/p/a.txt' },
  failed: false,
  startedAt: 1,
  endedAt: 2,
  edit: { created: false, counted: { insertions: 3, deletions: 1 }, hunks: [] },
};
const FACTS = { calls: [CALL], all: [CALL], acted: true };
const IDLE = { calls: [], all: [], acted: false };
const markOf = (name: string): Mark => ({
  head: name,
  branch: undefined,
  logged: undefined,
  tree: name,
  changed: [],
});

let clock: ManualClock;
let evidence: Deferred<void>;
let marks: (() => Promise<Mark>)[];
/** The mark each report was counted from. */
let since: (string | undefined)[];
/** The marks left to a server that continues the session. */
let kept: (string | undefined)[];
let work: SessionWork;
let shared = false;

beforeEach(() => {
  clock = new ManualClock();
  evidence = deferred();
  evidence.resolve();
  marks = [];
  since = [];
  kept = [];
  shared = false;
  const workspace: Partial<Workspace> = {
    root: '/p',
    begun: markOf('begun'),
    keepMark: async (mark) => void kept.push(mark?.head),
    lastMark: async () => markOf('kept'),
    mark: () => (marks.shift() ?? (async () => markOf('later')))(),
    async evidence(from, calls, isShared) {
      since.push(from?.head);
      await evidence.promise;
      const change = { path: 'a.txt', status: 'modified', insertions: 7, deletions: 0, isBinary: false } as const;
      const session = { filesChanged: since.length, insertions: 7, deletions: 0, commits: 0 };
      const now = markOf(`after ${since.length}`);
      return { calls, changes: [change], lastWrite: 0, shared: isShared, session, now };
    },
    close: async () => undefined,
  };
  const opened: OpenedWorkspace = { workspace: workspace as Workspace, workReport, fullWork };
  work = new SessionWork({} as Session, {
    clock,
    openWorkspace: async () => opened,
    othersWorked: () => shared,
    debug: () => undefined,
  });
});

async function turn(): Promise<void> {
  work.turnBegins();
  await work.opened();
  await vi.waitFor(() => work.toolUsed(), { timeout: 30_000 });
  const done = deferred<void>();
  work.turnEnds(FACTS, () => done.resolve());
  await done.promise;
}

test.each([
  ['is known', (mark: Deferred<Mark>) => mark.resolve(markOf('slow'))],
  ['cannot be found out', (mark: Deferred<Mark>) => mark.reject(new Error('git failed'))],
  ['takes too long', () => clock.advance(2_000)],
])('a new process gets its message once the baseline of the turn %s', async (_what, end) => {
  await turn();
  const mark = deferred<Mark>();
  marks = [() => mark.promise];
  let isKnown = false;
  work.turnBegins();
  await vi.waitFor(() => expect(marks).toHaveLength(0), { timeout: 30_000 });
  const known = work.baselineKnown().then(() => (isKnown = true));
  await Promise.resolve();
  expect(isKnown).toBe(false);
  end(mark);
  await known;
});

describe('the report', () => {
  test('comes from git', async () => {
    await turn();
    expect(work.short([])).toMatchObject({ filesChanged: 1, insertions: 7 });
    expect(work.short([])).not.toHaveProperty('incomplete');
    expect(work.isReporting).toBe(false);
  });

  test('counts from a mark still being taken when an idle turn ended before it', async () => {
    await turn();
    const [slow, fresh] = [deferred<Mark>(), deferred<Mark>()];
    marks = [() => slow.promise, () => fresh.promise];
    work.turnBegins();
    await vi.waitFor(() => expect(marks).toHaveLength(1), { timeout: 30_000 });
    work.turnEnds(IDLE, () => undefined);
    work.turnBegins();
    // A second mark would have been requested by now, and would never arrive.
    slow.resolve(markOf('slow'));
    await slow.promise;
    const done = deferred<void>();
    work.turnEnds(FACTS, () => done.resolve());
    await done.promise;
    expect(since).toEqual(['begun', 'slow']);
    expect(marks).toHaveLength(1);
    // After a turn that did something, the next turn takes a new mark.
    work.turnBegins();
    await vi.waitFor(() => expect(marks).toHaveLength(0), { timeout: 30_000 });
  });

  test('waits two seconds for git, then falls back to the file tools, and is completed once git is done', async () => {
    evidence = deferred();
    work.turnBegins();
    await work.opened();
    const done = vi.fn();
    work.turnEnds(FACTS, done);
    await vi.waitFor(() => expect(since).toEqual(['begun']), { timeout: 30_000 });
    clock.advance(1_999);
    expect(done).not.toHaveBeenCalled();
    expect(work.isReporting).toBe(true);
    clock.advance(1);
    await vi.waitFor(() => expect(done).toHaveBeenCalledOnce(), { timeout: 30_000 });
    expect(work.short([])).toMatchObject({
      filesChanged: 1,
      insertions: 3,
      deletions: 1,
      incomplete: 'git took longer than 2 s: the files are those reported by the file tools',
    });
    evidence.resolve();
    await vi.waitFor(() => expect(work.short([])).toMatchObject({ insertions: 7 }), { timeout: 30_000 });
    expect(work.short([])).not.toHaveProperty('incomplete');
    expect(done).toHaveBeenCalledOnce();
  });

  test('is there even if git has not yet found out where the session works', async () => {
    const slow = deferred<OpenedWorkspace>();
    work = new SessionWork({} as Session, {
      clock,
      openWorkspace: () => slow.promise,
      loadWords: async () => ({ workReport, fullWork }),
      debug: () => undefined,
    });
    work.turnBegins();
    const done = vi.fn();
    work.turnEnds(FACTS, done);
    clock.advance(2_000);
    await vi.waitFor(() => expect(done).toHaveBeenCalledOnce(), { timeout: 30_000 });
    expect(work.short([])).toMatchObject({
      filesChanged: 1,
      insertions: 3,
      lastCheck: null,
      incomplete: expect.stringContaining('git took longer than 2 s'),
    });
    slow.reject(new Error('no git'));
  });

  test('says that git failed, and falls back to the file tools', async () => {
    evidence.promise.catch(() => undefined);
    evidence = deferred();
    evidence.promise.catch(() => undefined);
    evidence.reject(new Error('disk on fire'));
    await turn();
    expect(work.full([])).toMatchObject({ insertions: 3, incomplete: expect.stringContaining('disk on fire') });
  });

  test('that arrives after the next turn has started is not attributed to that turn', async () => {
    evidence = deferred();
    work.turnBegins();
    await work.opened();
    work.turnEnds(FACTS, () => undefined);
    await vi.waitFor(() => expect(since).toHaveLength(1), { timeout: 30_000 });
    work.turnBegins();
    evidence.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(work.short([])).toBeUndefined();
  });
});

describe('a later turn counts from', () => {
  test('its own mark, so that changes by others in between are not attributed to it', async () => {
    await turn();
    marks = [async () => markOf('second')];
    work.turnBegins();
    await vi.waitFor(() => expect(marks).toEqual([]), { timeout: 30_000 });
    await new Promise((resolve) => setImmediate(resolve));
    work.toolUsed();
    const done = deferred<void>();
    work.turnEnds(FACTS, () => done.resolve());
    await done.promise;
    expect(since).toEqual(['begun', 'second']);
  });

  test('the end of the previous turn if its first tool ran before the mark was taken', async () => {
    await turn();
    const slow = deferred<Mark>();
    marks = [() => slow.promise];
    work.turnBegins();
    work.toolUsed();
    slow.resolve(markOf('too late'));
    const done = deferred<void>();
    work.turnEnds(FACTS, () => done.resolve());
    await done.promise;
    expect(since).toEqual(['begun', 'after 1']);
  });
});

test('a turn without tools does not run git', async () => {
  work.turnBegins();
  const done = deferred<void>();
  work.turnEnds(IDLE, () => done.resolve());
  await done.promise;
  expect(since).toEqual([]);
  expect(work.short([])).toMatchObject({ filesChanged: 0, commandsRun: 0 });
});

test('work in the same directory as another session is marked as shared', async () => {
  shared = true;
  await turn();
  expect(work.short([])).toMatchObject({ shared: true });
});

test('a turn that an earlier server began is counted from the mark that was kept', async () => {
  work.turnContinues();
  const done = deferred<void>();
  work.turnEnds(FACTS, () => done.resolve());
  await done.promise;
  expect(since).toEqual(['kept']);
  expect(work.short([])).toMatchObject({ filesChanged: 1 });
});

test('the mark of a turn is kept while it runs, and the state after it when it ends', async () => {
  work.turnBegins();
  await vi.waitFor(() => expect(kept).toEqual(['begun']), { timeout: 30_000 });
  work.toolUsed();
  const done = deferred<void>();
  work.turnEnds(FACTS, () => done.resolve());
  await done.promise;
  expect(kept).toEqual(['begun', 'after 1']);
  // The next turn’s mark comes too late to be a baseline: the last state is.
  const late = deferred<Mark>();
  marks.push(() => late.promise);
  work.turnBegins();
  work.toolUsed();
  late.resolve(markOf('late'));
  await vi.waitFor(() => expect(marks).toEqual([]), { timeout: 30_000 });
  expect(kept).toEqual(['begun', 'after 1']);
});
