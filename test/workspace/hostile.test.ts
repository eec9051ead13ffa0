/** Nothing that a session writes into its repository runs when the server uses git there. */

import { execFileSync } from 'node:child_process';
import { appendFile, chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findCheckout, operationOnBranch } from '../../src/workspace/git/checkout.ts';
import { gitWithoutHooks, readPlainFile } from '../../src/workspace/git/git.ts';
import { findGit, runGit } from '../../src/workspace/git/git-process.ts';
import { configText } from '../../src/workspace/git/pinned-settings.ts';
import { Workspaces, type Workspace } from '../../src/workspace/workspace.ts';
import { eventually } from '../harness/eventually.ts';
import { openScene, type Scene } from './scene.ts';

const HOOKS =
  'post-checkout post-index-change reference-transaction pre-commit post-commit post-merge pre-merge-commit commit-msg post-rewrite'.split(
    ' ',
  );

let scene: Scene;
let spaces: Workspaces;
beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', { 'a.txt': 'one\n', 'b.txt': 'two\n' });
  spaces = new Workspaces({
    env: {
      ...scene.host.env,
      GIT_DIR: '/nowhere',
      GIT_EXTERNAL_DIFF: await scene.trap('environment'),
      GIT_CONFIG_COUNT: '1',
    },
    worktreesDir: scene.worktrees.worktreesDir,
    snapshotsDir: path.join(scene.root, 'snapshots'),
  });
});
afterEach(() => scene.close());

const PROGRAMS = [
  'core.fsmonitor', 'core.sshCommand', 'core.gitProxy', 'core.askPass', 'core.pager', 'core.editor', 'core.alternateRefsCommand',
  'sequence.editor', 'diff.external', 'diff.evil.textconv', 'diff.evil.command', 'interactive.diffFilter', 'gpg.program',
  'gpg.ssh.program', 'credential.helper', 'uploadpack.packObjectsHook', 'remote.origin.uploadpack', 'merge.evil.driver',
]; // prettier-ignore

/** Adds everything that can make git run something to a configuration file. */
async function setTraps(file = path.join(scene.repo, '.git', 'config')): Promise<void> {
  const settings: [string, string][] = [];
  for (const key of PROGRAMS) settings.push([key, await scene.trap(key.replaceAll('.', '-'))]);
  settings.push(
    ['filter.evil.clean', await scene.trap('filter-clean')],
    ['filter.evil.smudge', await scene.trap('filter-smudge')],
    ['filter.lfs.process', await scene.trap('process')],
    ['merge.default', 'evil'],
    ['alias.status', `!${await scene.trap('alias')}`],
    ['submodule.recurse', 'true'],
    ['submodule.sub.update', `!${await scene.trap('submodule-update')}`],
    ['hook.a=b.event', 'reference-transaction'],
    ['hook.a=b.event', 'post-checkout'],
    ['hook.a=b.command', await scene.trap('hook-of-the-configuration')],
    ['hook.a=b.enabled', 'true'],
    ['commit.gpgSign', 'true'],
    ['log.showSignature', 'true'],
    ['remote.origin.url', `ext::${await scene.trap('remote')}`],
    ['remote.origin.promisor', 'true'],
  );
  await appendFile(file, configText(settings));
}

async function setHooks(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const hook of HOOKS) {
    const file = path.join(directory, hook);
    await writeFile(file, `#!/bin/sh\nexec '${await scene.trap(`hook-${hook}`)}' </dev/null\n`);
    await chmod(file, 0o755);
  }
}

const ATTRIBUTES = '*.txt filter=evil diff=evil merge=evil\n*.bin filter=lfs\n';

async function attack(files: string): Promise<void> {
  await setHooks(path.join(scene.repo, '.git', 'hooks'));
  await setHooks(path.join(scene.root, 'hooks'));
  await scene.write('.gitattributes', ATTRIBUTES, files);
  await scene.write('.git/info/attributes', ATTRIBUTES);
  const sub = path.join(files, 'sub');
  await mkdir(sub);
  await scene.gitAt(sub, 'init', '--quiet');
  await scene.gitAt(sub, 'commit', '--quiet', '--allow-empty', '--message', 'sub');
  await scene.gitAt(
    files,
    'update-index',
    '--add',
    '--cacheinfo',
    `160000,${await scene.gitAt(sub, 'rev-parse', 'HEAD')},sub`,
  );
  await scene.gitAt(sub, 'commit', '--quiet', '--allow-empty', '--message', 'more');
  await scene.gitAt(sub, 'config', 'core.fsmonitor', await scene.trap('submodule-fsmonitor'));
  await scene.write('.gitmodules', '[submodule "sub"]\n\tpath = sub\n\turl = ext::sh\n', files);
  await scene.write('sub/dirty', '', files);
  const elsewhere = path.join(scene.root, 'alternate');
  await scene.gitAt(scene.root, 'init', '--quiet', elsewhere);
  await scene.write('.git/objects/info/alternates', `${path.join(elsewhere, '.git', 'objects')}\n`);
  await setTraps(path.join(scene.root, 'included'));
  await scene.git('config', 'include.path', path.join(scene.root, 'included'));
  await scene.git('config', 'core.hooksPath', path.join(scene.root, 'hooks'));
  await setTraps();
  await scene.git('config', 'extensions.worktreeConfig', 'true');
  const own = await scene.gitAt(files, 'rev-parse', '--absolute-git-dir');
  await setTraps(path.join(own, 'config.worktree'));
  await rm(path.join(scene.root, 'sprung'), { force: true });
}

async function inspectEverything(workspace: Workspace): Promise<void> {
  const mark = await workspace.mark();
  await workspace.evidence(mark, [], false);
  await workspace.diff({ maxBytes: 10_000, offset: 0 }, []);
}

describe('a repository that its session made hostile', () => {
  test('runs programs when the user’s own git is used', async () => {
    await attack(scene.repo);
    await scene.write('a.txt', 'changed\n');
    for (const command of [
      ['diff'],
      ['-c', 'diff.external=', '-c', 'diff.evil.command=', 'diff', '--no-ext-diff'],
      ['add', 'a.txt'],
      ['status'],
      ['checkout', '--force', 'HEAD', '--', 'a.txt'],
      ['ls-remote', 'ssh://nowhere.invalid/x'],
    ])
      await scene.git(...command).catch(() => undefined);
    const sprung = await scene.sprung();
    for (const trap of [
      'core-fsmonitor',
      'core-sshCommand',
      'diff-evil-command',
      'diff-evil-textconv',
      'filter-clean',
      'filter-smudge',
      'hook-post-index-change',
      'submodule-fsmonitor',
    ])
      expect(sprung).toContain(trap);
  });

  test('runs nothing when its directory is inspected', async () => {
    const workspace = await spaces.openDirectory('s', scene.repo);
    await scene.commit('made', { 'c.txt': 'three\n' });
    await attack(scene.repo);
    await scene.write('a.txt', 'changed\n');
    await scene.write('big.bin', 'x');
    await rm(path.join(scene.root, 'sprung'), { force: true });
    await inspectEverything(workspace);
    const { git } = await workspace.evidence(workspace.begun, [], false);
    expect(git?.commits).toMatchObject([{ subject: 'made' }]);
    const { diff, filesChanged } = await workspace.diff({ maxBytes: 10_000, offset: 0 }, []);
    expect(await scene.sprung()).toEqual([]);
    expect(filesChanged).toBe(6);
    expect(diff).toContain('-one\n+changed\n');
  });

  test('runs nothing when its worktree is inspected or discarded, or another one is created', async () => {
    const workspace = await spaces.openWorktree({ sessionId: 'first', cwd: scene.repo });
    await attack(workspace.cwd);
    await scene.write('a.txt', 'changed\n', workspace.cwd);
    await rm(path.join(scene.root, 'sprung'), { force: true });
    await inspectEverything(workspace);
    // Filters are pinned when a session starts; this one has only the user's own.
    const second = await spaces.openWorktree({ sessionId: 'second', cwd: scene.repo, filters: 'user' });
    await scene.write('a.txt', 'second\n', second.cwd);
    await scene.write('.gitattributes', ATTRIBUTES, second.cwd);
    await inspectEverything(second);
    await expect(second.discard()).rejects.toThrow(/uncommitted changes/);
    expect(await scene.sprung()).toEqual([]);
  });

  test('cannot have its work applied through new filters, which the error names', async () => {
    const workspace = await spaces.openWorktree({ sessionId: 'first', cwd: scene.repo });
    await scene.write('.gitattributes', ATTRIBUTES, workspace.cwd);
    await scene.git('config', 'filter.evil.clean', await scene.trap('filter-clean'));
    await scene.write('a.txt', 'changed\n', workspace.cwd);
    await expect(workspace.apply({ mode: 'merge' })).rejects.toThrow(
      /git filter evil was added or changed after the session started/,
    );
    expect(await scene.sprung()).toEqual([]);
  });

  test.each(['merge', 'squash', 'patch'] as const)(
    'runs nothing when its work is applied as %s to a base that has moved on',
    async (mode) => {
      const workspace = await spaces.openWorktree({ sessionId: 'first', cwd: scene.repo });
      await scene.write('a.txt', 'one\nchanged\n', workspace.cwd);
      await scene.commit('moved on', { 'c.txt': 'c\n' });
      await setHooks(path.join(scene.repo, '.git', 'hooks'));
      await setTraps();
      await scene.git('config', '--unset-all', 'filter.evil.clean');
      await scene.write('.git/info/attributes', ATTRIBUTES);
      await rm(path.join(scene.root, 'sprung'), { force: true });
      expect(await workspace.apply({ mode })).toMatchObject({ outcome: 'applied' });
      await workspace.discard({ force: true });
      expect(await scene.sprung()).toEqual([]);
      expect(await scene.read('a.txt')).toBe('one\nchanged\n');
    },
  );

  test('uses the filters as they were when the session started', async () => {
    await scene.git('config', 'filter.upper.clean', 'tr a-z A-Z');
    await scene.git('config', 'filter.upper.smudge', 'tr A-Z a-z');
    await scene.commit('filtered', { '.gitattributes': 'f.txt filter=upper\n', 'f.txt': 'hello\n' });
    const workspace = await spaces.openWorktree({ sessionId: 'first', cwd: scene.repo });
    expect(await scene.read('f.txt', workspace.cwd)).toBe('hello\n');
    await scene.git('config', 'filter.upper.smudge', await scene.trap('changed-smudge'));
    await scene.write('f.txt', 'hello again\n', workspace.cwd);
    const { diff } = await workspace.diff({ maxBytes: 1000, offset: 0 }, []);
    expect(diff).toContain('+HELLO AGAIN\n');
    expect(await scene.sprung()).toEqual([]);
  });

  test('cannot make a filter run a file that the session wrote', async () => {
    await scene.git('config', 'filter.own.clean', 'sh tools/clean.sh');
    // Scripts and Python modules are looked up in the directory in which git starts the filter.
    const trap = await scene.trap('planted');
    await scene.git('config', 'filter.near.clean', `if test -e planted; then '${trap}'; fi; tr a-z A-Z`);
    await scene.commit('filtered', {
      '.gitattributes': '*.own filter=own\n*.near filter=near\n',
      'tools/clean.sh': 'cat\n',
      'f.own': 'x\n',
      'f.near': 'x\n',
    });
    const workspace = await spaces.openWorktree({ sessionId: 'first', cwd: scene.repo });
    await scene.write('tools/clean.sh', `${await scene.trap('rewritten')}\n`, workspace.cwd);
    await scene.write('planted', '', workspace.cwd);
    await scene.write('f.near', 'near\n', workspace.cwd);
    const { diff } = await workspace.diff({ maxBytes: 10_000, offset: 0 }, []);
    expect(diff).toContain('+NEAR\n');
    expect(await workspace.apply({ mode: 'squash' })).toMatchObject({ outcome: 'applied' });
    await scene.write('f.own', 'own\n', workspace.cwd);
    await inspectEverything(workspace);
    expect(workspace.notes).toEqual([expect.stringContaining('The git filter own is left out of the worktree')]);
    await expect(workspace.apply({ mode: 'squash' })).rejects.toThrow(
      /git filter own .*runs a file from the repository/,
    );
    expect(await scene.sprung()).toEqual([]);
  });

  test('has the hooks in its configuration disabled by name', async () => {
    await setTraps();
    const git = await gitWithoutHooks(scene.host, path.join(scene.repo, '.git'));
    expect((await git(['config', '--get', 'hook.a=b.enabled'])).trim()).toBe('false');
  });

  test.skipIf(process.platform === 'win32')(
    'cannot block the server with a pipe or a device in place of a file',
    async () => {
      const workspace = await spaces.openDirectory('s', scene.repo);
      const files = [
        'info/exclude',
        'info/attributes',
        'packed-refs',
        'shallow',
        'sharedindex.x',
        'BISECT_START',
        'logs/HEAD',
      ];
      for (const name of files) {
        await rm(path.join(scene.repo, '.git', name), { force: true });
        execFileSync('mkfifo', [path.join(scene.repo, '.git', name)]);
      }
      await symlink('/dev/zero', path.join(scene.repo, '.git', 'rebase-apply'));
      for (const name of files) expect(await readPlainFile(path.join(scene.repo, '.git', name))).toBe('');
      expect(await readPlainFile('/dev/zero')).toBe('');
      // Git itself reads these, and would block until its timeout.
      for (const name of ['packed-refs', 'shallow']) await rm(path.join(scene.repo, '.git', name));
      await scene.write('a.txt', 'changed\n');
      expect((await workspace.diff({ maxBytes: 1000, offset: 0 }, [])).filesChanged).toBe(1);
      expect((await workspace.evidence(workspace.begun, [], false)).git?.commits).toEqual([]);
      await spaces.openDirectory('t', scene.repo);
      expect(await operationOnBranch(path.join(scene.repo, '.git'), 'refs/heads/main')).toBeUndefined();
    },
  );

  test('cannot hide what changed behind attributes, replaced objects or excluded files', async () => {
    const workspace = await spaces.openDirectory('s', scene.repo);
    await scene.write('.gitattributes', '* -diff\n');
    await scene.write('.git/info/exclude', '*\n');
    await scene.write('a.txt', 'evil\n');
    await scene.git('add', '--force', 'a.txt');
    const [evil, good] = [await scene.git('rev-parse', ':a.txt'), await scene.git('rev-parse', 'HEAD:a.txt')];
    await scene.git('replace', evil, good);
    await scene.write('hidden.txt', 'new\n');
    const { diff } = await workspace.diff({ maxBytes: 10_000, offset: 0 }, []);
    expect(diff).toContain('+evil\n');
    expect(diff).toContain('+++ b/hidden.txt');
  });

  test('cannot make git fetch missing objects', async () => {
    const workspace = await spaces.openDirectory('s', scene.repo);
    const blob = await scene.git('rev-parse', 'HEAD:a.txt');
    await setTraps();
    await scene.git('config', 'core.repositoryFormatVersion', '1');
    await scene.git('config', 'extensions.partialClone', 'origin');
    await rm(path.join(scene.repo, '.git', 'objects', blob.slice(0, 2), blob.slice(2)));
    await scene.write('a.txt', 'changed\n');
    await rm(path.join(scene.root, 'sprung'), { force: true });
    await workspace.diff({ maxBytes: 10_000, offset: 0 }, []).catch(() => undefined);
    await spaces.openWorktree({ sessionId: 'x', cwd: scene.repo, base: 'f'.repeat(40) }).catch(() => undefined);
    expect(await scene.sprung()).toEqual([]);
  });

  test('can neither name another working tree nor reveal the target of a symlink', async () => {
    await scene.git('config', 'core.worktree', scene.home);
    await expect(findCheckout(scene.host, scene.repo)).rejects.toThrow(/names .*home as its working tree/);
    await scene.git('config', '--unset', 'core.worktree');
    const workspace = await spaces.openDirectory('s', scene.repo);
    const secret = await scene.write('secret', 'password\n', scene.root);
    await symlink(secret, path.join(scene.repo, 'link'));
    const { diff } = await workspace.diff({ maxBytes: 10_000, offset: 0 }, []);
    expect(diff).toContain('new file mode 120000');
    expect(diff).not.toContain('password');
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('running git', () => {
  test('uses only absolute entries of the PATH, and passes on neither GIT_ variables nor LD_PRELOAD', async () => {
    const bin = path.join(scene.root, 'bin');
    await mkdir(bin);
    await symlink(scene.host.executable, path.join(bin, 'git'));
    const host = await findGit({
      PATH: `.:relative::${bin}`,
      HOME: scene.home,
      GIT_SSH_COMMAND: 'evil',
      LD_PRELOAD: 'x',
    });
    expect(host?.executable).toBe(path.join(bin, 'git'));
    expect(host?.env['PATH']).toBe(bin);
    expect(Object.keys(host!.env)).not.toContain('GIT_SSH_COMMAND');
    expect(Object.keys(host!.env)).not.toContain('LD_PRELOAD');
    expect(await findGit({ PATH: '.:bin' })).toBeUndefined();
  });

  test('kills a git that takes too long, with its children, and one that writes too much', async () => {
    const pidFile = path.join(scene.root, 'pid');
    const slow = `!sleep 600 & echo $! > '${pidFile}'; wait`;
    const run = { cwd: scene.repo, args: ['-c', `alias.slow=${slow}`, 'slow'] };
    await expect(runGit(scene.host, { ...run, timeoutMs: 1500 })).rejects.toThrow(/longer than 1500 ms/);
    const pid = Number(await readFile(pidFile, 'utf8'));
    await eventually(() => !isRunning(pid), { what: 'the command that git started has exited' });
    const endless = ['-c', 'alias.endless=!yes', 'endless'];
    await expect(runGit(scene.host, { cwd: scene.repo, args: endless, maxBytes: 10_000 })).rejects.toThrow(
      /more than 10000/,
    );
  });
});
