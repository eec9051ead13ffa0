/** The server's counts, compared with git's own. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { chmod, copyFile, mkdir, rename, rm, utimes } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FileChange } from '../../src/workspace/report/compare.ts';
import { newestDirectory } from '../../src/workspace/git/searched-index.ts';
import { Workspaces, type Workspace } from '../../src/workspace/workspace.ts';
import { openScene, type Scene } from './scene.ts';

let scene: Scene;
let workspace: Workspace;

beforeEach(async () => {
  scene = await openScene();
});
afterEach(() => scene.close());

async function open(): Promise<void> {
  const { env } = scene.host;
  const { worktreesDir } = scene.worktrees;
  workspace = await new Workspaces({ env, worktreesDir, snapshotsDir: path.join(scene.root, 's') }).openDirectory(
    's',
    scene.repo,
  );
}

const LINES = Array.from({ length: 20 }, (_, index) => `line ${index}\n`).join('');

/** The tree of all files as they are now, written by git itself. */
async function treeNow(): Promise<string> {
  const index = path.join(scene.repo, '.git', 'index');
  const env = { GIT_INDEX_FILE: path.join(scene.root, 'index') };
  await copyFile(index, env.GIT_INDEX_FILE).catch(() => undefined);
  const run = (...args: string[]): string =>
    execFileSync('git', args, { cwd: scene.repo, env: { ...scene.host.env, ...env }, encoding: 'utf8' }).trim();
  run('add', '--all');
  return run('write-tree');
}

async function numstat(before: string, after: string): Promise<string[]> {
  const text = await scene.git('-c', 'core.quotePath=false', 'diff', '-M', '--numstat', before, after);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .sort();
}

function asNumstat({ path: name, oldPath, insertions, deletions, isBinary }: FileChange): string {
  const counts = isBinary ? '-\t-' : `${insertions}\t${deletions}`;
  return `${counts}\t${oldPath === undefined ? name : `${oldPath} => ${name}`}`;
}

/** What the user's own git says differs from HEAD. */
async function uncommitted(): Promise<{ count: number; paths: string[] }> {
  const text = await scene.git('status', '--porcelain', '-z', '-uall', '--no-renames', '--ignore-submodules=dirty');
  const paths = new Set(text.split('\0').flatMap((entry) => (entry === '' ? [] : entry.slice(3))));
  return { count: paths.size, paths: [...paths].sort() };
}

/** Object ids are as long as their repository needs. */
function withoutIds(diff: string): string {
  return diff.replaceAll(/^index .*\n/gm, '').trimEnd();
}

const CHANGES: Record<string, () => Promise<unknown>> = {
  'edits, writes and deletes': async () => {
    await scene.write('a.txt', LINES.replace('line 3\n', 'three\nand more\n'));
    await scene.write('new.txt', 'x\ny\n');
    await rm(path.join(scene.repo, 'b.txt'));
  },
  'a rename with an edit': async () => {
    await rename(path.join(scene.repo, 'a.txt'), path.join(scene.repo, 'moved.txt'));
    await scene.write('moved.txt', `${LINES}one more\n`);
  },
  'a move by command, committed': async () => {
    await scene.git('mv', 'a.txt', 'z.txt');
    await scene.git('commit', '--quiet', '--message', 'moved');
  },
  'generated, binary and empty files': async () => {
    for (let index = 0; index < 30; index++) await scene.write(`gen/f${index}`, `${index}\n`);
    await scene.write('picture', Buffer.from([1, 0, 2]));
    await scene.write('empty', '');
  },
  'ignored files': () => scene.write('x.log', 'ignored\n'),
  'names with spaces, quotes and non-ASCII letters': async () => {
    await scene.write('ä b/"c".txt', 'x\n');
    await scene.write('tab\there', 'x\n');
  },
  'a mode change': () => chmod(path.join(scene.repo, 'a.txt'), 0o755),
  'a file that is edited and restored': async () => {
    await scene.write('a.txt', 'other\n');
    await scene.git('add', 'a.txt');
    await scene.write('a.txt', LINES);
  },
  'a file that is removed from the index but not from disk': () => scene.git('rm', '--quiet', '--cached', 'a.txt'),
  'a switch to another branch': async () => {
    await scene.git('checkout', '--quiet', '-b', 'side');
    await scene.commit('side', { 'side.txt': 'side\n', 'a.txt': 'new\n' });
  },
  'a new commit in a submodule': async () => {
    const sub = path.join(scene.repo, 'sub');
    await scene.gitAt(sub, 'commit', '--quiet', '--allow-empty', '--message', 'more');
  },
  nothing: async () => undefined,
};

async function createRepository(): Promise<void> {
  const sub = path.join(scene.repo, 'sub');
  await mkdir(sub);
  await scene.gitAt(sub, 'init', '--quiet');
  await scene.gitAt(sub, 'commit', '--quiet', '--allow-empty', '--message', 'sub');
  await scene.commit('begin', { 'a.txt': LINES, 'b.txt': 'b\n', '.gitignore': '*.log\n' });
}

describe.each(['clean', 'dirty'])('in a %s repository', (state) => {
  test.each(Object.keys(CHANGES))('%s: the counts match git’s', async (name) => {
    await createRepository();
    if (state === 'dirty') {
      await scene.write('b.txt', 'changed before\n');
      await scene.write('untracked.txt', 'before\n');
      await scene.write('staged.txt', 'before\n');
      await scene.git('add', 'staged.txt');
    }
    await open();
    const [mark, before] = [await workspace.mark(), await treeNow()];
    await CHANGES[name]!();
    const { changes, git, diff } = await workspace.evidence(mark, [], false);
    const after = await treeNow();
    const expected = await numstat(before, after);
    expect({ ...git?.uncommitted, paths: [...git!.uncommitted.paths].sort() }).toEqual(await uncommitted());
    if (diff !== undefined)
      expect(withoutIds(diff)).toBe(
        withoutIds(await scene.git('-c', 'core.quotePath=false', 'diff', '-M', before, after)),
      );
    expect(changes!.map(asNumstat).sort()).toEqual(
      expected.map((line) =>
        line.replaceAll(/"(.*)"/g, (_, quoted: string) => quoted.replaceAll('\\"', '"').replaceAll('\\t', '\t')),
      ),
    );
  });
});

describe('the commits made', () => {
  const commit = (subject: string): Promise<void> => scene.commit(subject, { [`${subject}.txt`]: `${subject}\n` });
  const cases: [string, () => Promise<unknown>, () => Promise<unknown>, string[]][] = [
    ['one', async () => undefined, () => commit('one'), ['one']],
    [
      'one that is amended',
      async () => undefined,
      async () => {
        await commit('one');
        await commit('two');
        await scene.git('commit', '--quiet', '--amend', '--message', 'second');
      },
      ['second', 'one'],
    ],
    [
      'one on a branch that HEAD has left again',
      async () => undefined,
      async () => {
        await scene.git('checkout', '--quiet', '-b', 'side');
        await commit('aside');
        await scene.git('checkout', '--quiet', 'main');
      },
      ['aside'],
    ],
    [
      'one that is reset',
      async () => undefined,
      async () => {
        await commit('gone');
        await scene.git('reset', '--quiet', '--hard', 'HEAD~1');
      },
      [],
    ],
    ['not those that are switched to', theirs, () => scene.git('checkout', '--quiet', 'theirs'), []],
    ['not those that are brought in by a fast-forward', theirs, () => scene.git('merge', '--quiet', '--ff-only', 'theirs'), []],
    [
      'a merge of those of others',
      theirs,
      async () => {
        await commit('mine');
        await scene.git('merge', '--quiet', '--no-edit', 'theirs');
      },
      ["Merge branch 'theirs'", 'mine'],
    ],
    [
      'those that a rebase makes anew',
      async () => {
        await theirs();
        await commit('ours');
      },
      async () => {
        await scene.git('checkout', '--quiet', 'theirs');
        await scene.git('rebase', '--quiet', 'main');
      },
      ['theirs'],
    ],
    [
      'where git keeps no log of HEAD',
      async () => {
        await scene.git('config', 'core.logAllRefUpdates', 'false');
        await rm(path.join(scene.repo, '.git', 'logs'), { recursive: true });
      },
      () => commit('unlogged'),
      ['unlogged'],
    ],
  ]; // prettier-ignore

  async function theirs(): Promise<void> {
    await scene.git('checkout', '--quiet', '-b', 'theirs');
    await commit('theirs');
    await scene.git('checkout', '--quiet', 'main');
  }

  test.each(cases)('%s', async (_, before, work, expected) => {
    await createRepository();
    await before();
    await open();
    const mark = await workspace.mark();
    await work();
    const { git } = await workspace.evidence(mark, [], false);
    expect(git?.commits.map(({ subject }) => subject)).toEqual(expected);
    for (const { sha, subject } of git?.commits ?? [])
      expect(await scene.git('show', '--no-patch', '--format=%s', sha)).toBe(subject);
    expect(git).toMatchObject({
      branch: await scene.git('branch', '--show-current'),
      head: await scene.git('rev-parse', 'HEAD'),
    });
  });

  test('the first of a repository, and one of a detached HEAD', async () => {
    await scene.write('a.txt', 'a\n');
    await open();
    const mark = await workspace.mark();
    expect((await workspace.evidence(mark, [], false)).git).toMatchObject({ branch: 'main', head: null, commits: [] });
    await scene.commit('first');
    const first = await workspace.evidence(mark, [], false);
    expect(first.git?.commits).toMatchObject([{ subject: 'first' }]);
    await scene.git('checkout', '--quiet', '--detach');
    await scene.commit('detached');
    const { git } = await workspace.evidence(first.now, [], false);
    expect(git).toMatchObject({ branch: null, commits: [{ subject: 'detached' }] });
  });
});

test('the sums of a session cover all its turns, and a server that continues it goes on with them', async () => {
  await createRepository();
  await open();
  const begin = await treeNow();
  await scene.commit('one', { 'a.txt': LINES.replace('line 3\n', 'three\n'), 'new.txt': 'x\n' });
  const first = await workspace.evidence(workspace.begun, [], false);
  expect(first.session).toEqual({ filesChanged: 2, insertions: 2, deletions: 1, commits: 1 });
  await scene.write('a.txt', LINES.replace('line 3\n', '3\n'));
  await rm(path.join(scene.repo, 'new.txt'));
  const { changes, session, git } = await workspace.evidence(first.now, [], false);
  expect(changes!.map(asNumstat)).toEqual(['1\t1\ta.txt', '0\t1\tnew.txt']);
  expect(await numstat(begin, await treeNow())).toEqual(['1\t1\ta.txt']);
  expect(session).toEqual({ filesChanged: 1, insertions: 1, deletions: 1, commits: 1 });
  expect(git?.commits).toEqual([]);
  await open();
  expect(workspace.isResumed).toBe(true);
  expect((await workspace.evidence(await workspace.lastMark(), [], false)).session).toEqual(session);
});

test('a file that was written and then committed has been written', async () => {
  await createRepository();
  await open();
  const mark = await workspace.mark();
  const before = Date.now() - 100;
  await scene.commit('written', { 'a.txt': 'x\n' });
  await utimes(path.join(scene.repo, 'a.txt'), 0, 0);
  expect((await workspace.evidence(mark, [], false)).lastWrite).toBeGreaterThan(before);
});

test('Claude’s own plans are no work', async () => {
  await createRepository();
  const { env } = scene.host;
  const plansDir = path.join(scene.home, '.claude', 'plans');
  const { worktreesDir } = scene.worktrees;
  const spaces = new Workspaces({ env, worktreesDir, plansDir, snapshotsDir: path.join(scene.root, 's') });
  const call = (file: string): Parameters<Workspace['evidence']>[1][number] => ({
    tool: 'Write', input: { file_path: file }, failed: false, startedAt: 0, endedAt: 1, edit: { created: true, hunks: [], content: 'x\n' },
  }); // prettier-ignore
  const other = path.join(scene.home, '.claude', 'settings.json');
  const calls = [call(path.join(plansDir, 'a-b.md')), call(other)];
  for (const cwd of [scene.repo, scene.home]) {
    const opened = await spaces.openDirectory(`in ${path.basename(cwd)}`, cwd);
    const evidence = await opened.evidence(opened.begun, calls, false);
    expect(evidence.calls).toEqual([calls[1]]);
    expect(evidence.session).toMatchObject({ filesChanged: 1 });
    // In the home it lies in the session's directory, from the repository it does not.
    const shown = cwd === scene.home ? path.relative(cwd, other) : other;
    expect(evidence.diff).toContain(`+++ ${shown}\n`);
  }
});

test('a new file counts in a repository without a commit', async () => {
  await scene.write('a.txt', 'before\n');
  await open();
  const mark = await workspace.mark();
  await scene.write('b.txt', 'x\n');
  const { changes } = await workspace.evidence(mark, [], false);
  expect(changes!.map(asNumstat)).toEqual(['1\t0\tb.txt']);
});

test('changes count with a split index, and in a repository with SHA-256', async () => {
  await createRepository();
  await scene.git('update-index', '--split-index');
  await open();
  const mark = await workspace.mark();
  await scene.write('a.txt', 'x\n');
  expect((await workspace.evidence(mark, [], false)).changes!.map(asNumstat)).toEqual(['1\t20\ta.txt']);
  const other = path.join(scene.root, 'sha256');
  await scene.gitAt(scene.root, 'init', '--quiet', '--object-format=sha256', other);
  await scene.write('a', 'x\n', other);
  const { env } = scene.host;
  const spaces = new Workspaces({
    env,
    worktreesDir: scene.worktrees.worktreesDir,
    snapshotsDir: path.join(scene.root, 's'),
  });
  const second = await spaces.openDirectory('t', other);
  const begin = await second.mark();
  await scene.write('b', 'x\n', other);
  expect((await second.evidence(begin, [], false)).changes!.map(asNumstat)).toEqual(['1\t0\tb']);
});

test.each(['--assume-unchanged', '--skip-worktree'])('a file hidden from git with %s counts', async (mark) => {
  await createRepository();
  await scene.write('b.txt', 'before\n');
  await scene.git('update-index', mark, 'b.txt');
  await open();
  const before = await workspace.mark();
  await scene.git('update-index', mark, 'a.txt');
  await scene.write('a.txt', 'hidden\n');
  expect((await workspace.evidence(before, [], false)).changes!.map(asNumstat)).toEqual(['1\t20\ta.txt']);
  expect(await scene.git('status', '--porcelain')).toBe('');
});

test('a new file counts even if its directory looks unchanged', async () => {
  await scene.commit('begin', { 'd/a.txt': LINES, 'e/b.txt': 'b\n' });
  await open();
  const past = new Date(Date.now() - 3_600_000);
  const addTo = async (directory: string, name: string): Promise<void> => {
    await scene.write(`${directory}/${name}`, 'x\n');
    await utimes(path.join(scene.repo, directory), past, past);
  };
  // In the same second as the mark, when a directory's times prove nothing.
  await addTo('d', 'before.txt');
  const first = await workspace.mark();
  await addTo('d', 'new.txt');
  const { changes, now } = await workspace.evidence(first, [], false);
  expect(changes).toMatchObject([{ path: 'd/new.txt', status: 'added' }]);
  // Later, when git has cached the directories.
  const directories = ['.', 'd', 'e'].map((name) => path.join(scene.repo, name));
  const changedAt = Math.max(...directories.map((name) => Math.floor(statSync(name).ctimeMs / 1000)));
  const isCached = async (): Promise<boolean> => {
    await workspace.mark();
    return newestDirectory(searchedIndex(), 20) === changedAt && changedAt < Math.floor(Date.now() / 1000) - 1;
  };
  if (process.platform === 'linux') await expect.poll(isCached, { timeout: 10_000 }).toBe(true);
  await addTo('e', 'new.txt');
  const later = await workspace.evidence(now, [], false);
  expect(later.changes).toMatchObject([{ path: 'e/new.txt', status: 'added' }]);
});

test.runIf(process.platform === 'linux')('the untracked cache of the session’s own git is not trusted', async () => {
  await scene.commit('begin', { 'd/a.txt': LINES });
  await scene.git('-c', 'core.untrackedCache=true', 'status', '--short');
  expect(readFileSync(path.join(scene.repo, '.git', 'index'), 'latin1')).toContain('UNTR');
  await open();
  await workspace.mark();
  expect(searchedIndex()).toHaveLength(0);
});

/** The server's own copy of the index, if it has one. */
function searchedIndex(): Buffer {
  const file = path.join(scene.root, 's', 's', 'searched', 'index');
  return existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
}

test('empty files that a running sandbox creates do not count, but one of the same name with content does', async () => {
  await createRepository();
  await open();
  const mark = await workspace.mark();
  for (const name of ['.bashrc', '.mcp.json', 'deep/.gitconfig', '.claude/settings.json', '.claude/skills'])
    await scene.write(name, '');
  expect((await workspace.evidence(mark, [], false)).changes).toEqual([]);
  await scene.write('.mcp.json', '{}\n');
  for (const name of ['settings.json', 'commands', 'src/agents']) await scene.write(name, '');
  const { changes } = await workspace.evidence(mark, [], false);
  expect(changes!.map(asNumstat)).toEqual([
    '1\t0\t.mcp.json',
    '0\t0\tcommands',
    '0\t0\tsettings.json',
    '0\t0\tsrc/agents',
  ]);
});

test('large files and nested repositories count without being read', async () => {
  await createRepository();
  await scene.write('data', Buffer.alloc(17 * 1024 * 1024));
  await open();
  const mark = await workspace.mark();
  expect((await workspace.evidence(mark, [], false)).changes).toEqual([]);
  await scene.write('data', Buffer.alloc(17 * 1024 * 1024 + 1));
  await mkdir(path.join(scene.repo, 'inner'));
  await scene.gitAt(path.join(scene.repo, 'inner'), 'init', '--quiet');
  await scene.write('inner/x', 'x');
  const { changes } = await workspace.evidence(mark, [], false);
  expect(changes!.map(asNumstat)).toEqual(['-\t-\tdata', '-\t-\tinner']);
});

test('edits of ignored files and outside the repository are taken from tool calls', async () => {
  await createRepository();
  await open();
  const mark = await workspace.mark();
  const call = (file: string): Parameters<Workspace['evidence']>[1][number] => ({
    tool: 'Write', input: { file_path: file }, failed: false, startedAt: 0, endedAt: 1, edit: { created: true, hunks: [], content: 'x\n' },
  }); // prettier-ignore
  const outside = path.join(scene.root, 'outside.txt');
  await scene.write('x.log', 'x\n');
  await scene.write('seen.txt', 'x\n');
  const calls = [call(path.join(scene.repo, 'x.log')), call(path.join(scene.repo, 'seen.txt')), call(outside)];
  const { changes } = await workspace.evidence(mark, calls, false);
  expect(changes!.map(({ path: name }) => name).sort()).toEqual([outside, 'seen.txt', 'x.log'].sort());
});

test('the pages of a diff add up to one comparison, which names binary files', async () => {
  await createRepository();
  await open();
  await scene.write('a.txt', LINES.replaceAll('line', 'Zeile ü'));
  await scene.write('picture', Buffer.from([1, 0, 2]));
  const whole = await workspace.diff({ maxBytes: 1_000_000, offset: 0 }, []);
  expect(whole.nextOffset).toBeUndefined();
  expect(whole.diff).toContain('Binary files /dev/null and b/picture differ');
  expect(whole.files).toMatchObject([
    { path: 'a.txt', insertions: 20 },
    { path: 'picture', isBinary: true },
  ]);
  let text = '';
  let page = await workspace.diff({ maxBytes: 100, offset: 0 }, []);
  await scene.write('a.txt', 'changed between the pages\n');
  for (;;) {
    expect(Buffer.byteLength(page.diff)).toBeLessThanOrEqual(100);
    text += page.diff;
    if (page.nextOffset === undefined) break;
    page = await workspace.diff({ maxBytes: 100, offset: page.nextOffset }, [], page.cursor);
  }
  expect(text).toBe(whole.diff);
});
