/** What evidence and worktrees cost in large repositories. */

import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { Workspaces, type Workspace } from '../../src/workspace/workspace.ts';
import { createHome } from '../../test/harness/isolated-home.ts';
import { median, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const run = promisify(execFile);
const CHANGED = 1_000;

export async function workspaceRows(rounds: number): Promise<Row[]> {
  const home = await createHome();
  const env = home.env();
  const root = path.dirname(home.home);
  const spaces = new Workspaces({
    env,
    worktreesDir: path.join(root, 'worktrees'),
    snapshotsDir: path.join(root, 's'),
  });
  try {
    const large = await repositoryOf(50_000, path.join(root, 'large'), env);
    const middle = await repositoryOf(10_000, path.join(root, 'middle'), env);
    return [
      await reportRow(rounds, spaces, large),
      await withoutGitRow(rounds, spaces, home.project),
      await worktreeRow(rounds, spaces, middle),
      await diffRow(rounds, spaces, middle),
    ];
  } finally {
    await home.remove();
  }
}

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
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'begin');
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

async function worktreeRow(rounds: number, spaces: Workspaces, repository: string): Promise<Row> {
  const times: number[] = [];
  for (let count = 0; count < rounds; count++) {
    let workspace: Workspace | undefined;
    times.push(
      await timed(async () => (workspace = await spaces.openWorktree({ sessionId: `w${count}`, cwd: repository }))),
    );
    await workspace?.discard();
  }
  const ms = median(times);
  return {
    what: 'a worktree of a repository of 10,000 files',
    target: 'at most 250 ms',
    measured: `${ms.toFixed(0)} ms`,
    reached: ms <= 250,
    numbers: { ms: round(ms, 1) },
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
