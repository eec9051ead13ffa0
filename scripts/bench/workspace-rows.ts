/** The cost of evidence and worktrees in large repositories. */

import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { Workspaces } from '../../src/workspace/workspace.ts';
import { openHarness, type Harness } from '../../test/harness/open-harness.ts';
import { interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const run = promisify(execFile);
const CHANGED = 1_000;

/** `startRow` and `turnRow` measure what a caller notices: the whole server with the real Claude Code. */
export async function workspaceRows(rounds: number): Promise<Row[]> {
  const harness = await openHarness({ record: 'none' });
  const root = path.dirname(harness.project);
  const env = { PATH: process.env['PATH'] ?? '', HOME: harness.home, TMPDIR: path.join(root, 'tmp') };
  const spaces = new Workspaces({
    env,
    worktreesDir: path.join(root, 'worktrees'),
    snapshotsDir: path.join(root, 's'),
  });
  try {
    harness.model.on(PROMPT).always('Done.');
    const large = await repositoryOf(50_000, path.join(root, 'large'), env);
    const middle = await repositoryOf(10_000, path.join(root, 'middle'), env);
    return [
      await reportRow(rounds, spaces, large),
      await withoutGitRow(rounds, spaces, harness.project),
      ...(await worktreeRows(rounds, spaces, middle, env)),
      await startRow(rounds, harness, middle),
      await turnRow(rounds, harness, large),
      await diffRow(rounds, spaces, middle),
    ];
  } finally {
    await harness.close();
  }
}

const PROMPT = 'benchmark turn';
const WAIT_MS = 120_000;

async function repositoryOf(files: number, directory: string, env: Record<string, string>): Promise<string> {
  const git = (...args: string[]): Promise<unknown> => run('git', args, { cwd: directory, env, maxBuffer: 2 ** 26 });
  await mkdir(directory, { recursive: true });
  for (let index = 0; index < files; index += 50) {
    const folder = path.join(directory, `d${Math.floor(index / 500)}`, `s${(index / 50) % 10}`);
    await mkdir(folder, { recursive: true });
    const names = Array.from({ length: 50 }, (_, offset) => index + offset);
    await Promise.all(names.map((name) => writeFile(path.join(folder, `f${name}.txt`), `line ${name}\n`.repeat(5))));
  }
  await git('init', '--quiet', '--initial-branch', 'main');
  await git('config', 'user.name', 'Bench');
  await git('config', 'user.email', 'bench@example.invalid');
  // Otherwise the commit leaves a git running that packs objects during the measurement; a clone is packed from the start.
  await git('config', 'gc.auto', '0');
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'begin');
  await git('gc', '--quiet');
  return directory;
}

/** A turn's result waits for this. */
async function reportRow(rounds: number, spaces: Workspaces, repository: string): Promise<Row> {
  const workspace = await spaces.openDirectory('report', repository);
  const mark = await workspace.mark();
  for (let index = 0; index < 5; index++) await writeFile(path.join(repository, `d0/s0/f${index}.txt`), 'changed\n');
  const times: number[] = [];
  for (let count = 0; count < rounds; count++) times.push(await timed(() => workspace.evidence(mark, [], false)));
  await workspace.close();
  const ms = median(times);
  return {
    what: 'work report in a repository of 50,000 files, 5 of them changed',
    target: 'at most 150 ms',
    measured: `${ms.toFixed(0)} ms`,
    reached: ms <= 150,
    numbers: { ms: round(ms, 1) },
  };
}

async function withoutGitRow(rounds: number, spaces: Workspaces, directory: string): Promise<Row> {
  const workspace = await spaces.openDirectory('plain', directory);
  const times: number[] = [];
  for (let count = 0; count < rounds; count++) times.push(await timed(() => workspace.evidence(undefined, [], false)));
  const ms = median(times);
  return {
    what: 'work report without git',
    target: 'nothing',
    measured: `${ms.toFixed(2)} ms`,
    reached: ms < 1,
    numbers: { ms: round(ms, 3) },
  };
}

/**
 * Worktrees are kept until the end: ext4 does not reuse an inode within minutes of its removal, and creating 10,000
 * files right after removing 10,000 takes ten times as long, for everyone.
 */
const MAX_WORKTREES = 7;

/** Compared with git's own command and a plain copy, since the time to write 10,000 files is the same for all. */
async function worktreeRows(
  rounds: number,
  spaces: Workspaces,
  repository: string,
  env: Record<string, string>,
): Promise<Row[]> {
  const git = (...args: string[]): Promise<unknown> => run('git', args, { cwd: repository, env });
  let count = 0;
  const place = (): string => `${repository}-${String(++count)}`;
  await git('worktree', 'add', '--quiet', '--detach', `${repository}-original`);
  const times = await interleaved(Math.min(rounds, MAX_WORKTREES), {
    copy: () => timed(() => run('cp', ['-R', `${repository}-original`, place()])),
    git: () => timed(() => git('worktree', 'add', '--quiet', '-b', `plain${String(++count)}`, place())),
    ours: () => timed(() => spaces.openWorktree({ sessionId: `w${String(++count)}`, cwd: repository })),
  });
  const [ours, theirs, copy] = [median(times.ours), median(times.git), median(times.copy)];
  return [
    {
      what: 'a worktree of a repository of 10,000 files, against `git worktree add`',
      target: 'at most 100 ms more',
      measured: `${(ours - theirs).toFixed(0)} ms more (${ours.toFixed(0)} ms, git ${theirs.toFixed(0)} ms)`,
      reached: ours - theirs <= 100,
      numbers: { ms: round(ours, 1), gitMs: round(theirs, 1) },
    },
    {
      what: 'the same, against a plain copy of its files (`cp -R`)',
      target: '',
      measured: `${ratio(times.ours, times.copy).toFixed(2)} × (${copy.toFixed(0)} ms)`,
      reached: undefined,
      numbers: { ratio: round(ratio(times.ours, times.copy), 2), copyMs: round(copy, 1) },
    },
  ];
}

async function begin(harness: Harness, cwd: string, advanced?: object): Promise<string> {
  const args = { prompt: PROMPT, cwd, waitMs: WAIT_MS, sessionInitTimeoutMs: WAIT_MS, ...(advanced && { advanced }) };
  const { sessionId } = (await harness.ok('claude_code', args, { timeout: WAIT_MS })) as { sessionId: string };
  return sessionId;
}

async function startRow(rounds: number, harness: Harness, cwd: string): Promise<Row> {
  const once = async (advanced?: object): Promise<number> => {
    let sessionId = '';
    const ms = await timed(async () => (sessionId = await begin(harness, cwd, advanced)));
    await harness.ok('claude_code_session', { action: 'cancel', sessionId }, { timeout: WAIT_MS });
    return ms;
  };
  // The very first process reads its program from disk.
  await once();
  const times = await interleaved(Math.min(rounds, MAX_WORKTREES), {
    without: () => once(),
    worktree: () => once({ workspace: { type: 'worktree' } }),
  });
  const [worktree, without] = [median(times.worktree), median(times.without)];
  return {
    what: 'new session with a worktree of a repository of 10,000 files, call to result, against without',
    target: 'at most 250 ms more',
    measured: `${(worktree - without).toFixed(0)} ms more (${worktree.toFixed(0)} ms, without ${without.toFixed(0)} ms)`,
    reached: worktree - without <= 250,
    numbers: { ms: round(worktree, 1), withoutMs: round(without, 1) },
  };
}

/** A mark is taken while the turn runs, and must not slow it down. */
async function turnRow(rounds: number, harness: Harness, large: string): Promise<Row> {
  const sessions = { large: await begin(harness, large), plain: await begin(harness, harness.project) };
  const turn = (sessionId: string): Promise<number> =>
    timed(() => harness.ok('claude_code_reply', { sessionId, prompt: PROMPT, waitMs: WAIT_MS }, { timeout: WAIT_MS }));
  const times = await interleaved(rounds * 4, {
    large: () => turn(sessions.large),
    plain: () => turn(sessions.plain),
  });
  const [withGit, without] = [median(times.large), median(times.plain)];
  return {
    what: 'second turn in a repository of 50,000 files, against a directory without git',
    target: 'at most 20 ms more',
    measured: `${(withGit - without).toFixed(0)} ms more (${withGit.toFixed(0)} ms, without ${without.toFixed(0)} ms)`,
    reached: withGit - without <= 20,
    numbers: { ms: round(withGit, 1), withoutMs: round(without, 1) },
  };
}

async function diffRow(rounds: number, spaces: Workspaces, repository: string): Promise<Row> {
  const workspace = await spaces.openDirectory('diff', repository);
  for (let index = 0; index < CHANGED; index++) {
    const folder = path.join(repository, `d${Math.floor(index / 500)}`, `s${Math.floor(index / 50) % 10}`);
    await writeFile(path.join(folder, `f${index}.txt`), `changed ${index}\n`);
  }
  const times: number[] = [];
  for (let count = 0; count < rounds; count++)
    times.push(await timed(() => workspace.diff({ maxBytes: 50_000, offset: 0 }, [])));
  await workspace.close();
  await rm(path.join(repository, 'd0'), { recursive: true, force: true });
  const ms = median(times);
  return {
    what: `first page of a diff of ${CHANGED.toLocaleString('en')} changed files among 10,000`,
    target: 'under a second',
    measured: `${ms.toFixed(0)} ms`,
    reached: ms < 1000,
    numbers: { ms: round(ms, 1) },
  };
}
