/** A repository with its own home, and the hosts that operate on it. */

import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { GitHost } from '../../src/workspace/git/git-process.ts';
import { findGit } from '../../src/workspace/git/git-process.ts';
import type { WorktreeHost } from '../../src/workspace/worktree/worktree-records.ts';
import { createHome } from '../harness/isolated-home.ts';

const run = promisify(execFile);

export interface Scene {
  readonly repo: string;
  readonly home: string;
  readonly root: string;
  readonly host: GitHost;
  readonly worktrees: WorktreeHost;
  /** The user's own git, which trusts the repository. */
  git(...args: string[]): Promise<string>;
  gitAt(cwd: string, ...args: string[]): Promise<string>;
  write(name: string, content: string | Buffer, inDirectory?: string): Promise<string>;
  read(name: string, inDirectory?: string): Promise<string | undefined>;
  commit(message: string, files?: Readonly<Record<string, string | Buffer | null>>): Promise<void>;
  /** A program that leaves a mark when it runs; as a filter it passes on what it reads. */
  trap(name: string): Promise<string>;
  /** Which traps ran. */
  sprung(): Promise<string[]>;
  close(): Promise<void>;
}

export async function openScene(name = 'repo'): Promise<Scene> {
  const place = await createHome();
  const root = path.dirname(place.home);
  const repo = path.join(root, name);
  const env = { ...place.env(), GIT_CONFIG_NOSYSTEM: '1' };
  // Otherwise each commit starts another git, to check whether maintenance is due.
  const settings = '[user]\n\tname = Test\n\temail = test@example.invalid\n[maintenance]\n\tauto = false\n';
  await writeFile(path.join(place.home, '.gitconfig'), settings);
  const host = await findGit(env);
  if (!host) throw new Error('These tests need git.');
  const gitAt = async (cwd: string, ...args: string[]): Promise<string> =>
    (await run('git', args, { cwd, env, maxBuffer: 2 ** 26 })).stdout.replace(/\n$/, '');
  const git = (...args: string[]): Promise<string> => gitAt(repo, ...args);
  const write: Scene['write'] = async (file, content, inDirectory = repo) => {
    const target = path.join(inDirectory, file);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, content);
    return target;
  };
  const log = path.join(root, 'sprung');
  await mkdir(repo, { recursive: true });
  await git('init', '--quiet', '--initial-branch', 'main');
  return {
    repo,
    home: place.home,
    root,
    host,
    worktrees: { git: host, worktreesDir: path.join(root, 'worktrees') },
    git,
    gitAt,
    write,
    read: (file, inDirectory = repo) => readFile(path.join(inDirectory, file), 'utf8').catch(() => undefined),
    async commit(message, files = {}) {
      for (const [file, content] of Object.entries(files)) {
        if (content === null) await rm(path.join(repo, file));
        else await write(file, content);
      }
      await git('add', '--all');
      await git('commit', '--quiet', '--allow-empty', '--message', message);
    },
    async trap(mark) {
      const file = path.join(root, 'traps', mark);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, `#!/bin/sh\necho ${mark} >> '${log}'\n${mark.startsWith('filter-') ? 'cat' : ''}\n`);
      await chmod(file, 0o755);
      return file;
    },
    sprung: async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').filter((line) => line !== ''),
    close: () => place.remove(),
  };
}
