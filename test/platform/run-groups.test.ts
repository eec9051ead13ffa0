import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownGroupDirectory, thisSystem } from '../../src/platform/system.ts';
import { ProcessOwner } from '../../src/platform/process-owner.ts';
import { endGroups, groupName, RunGroups } from '../../src/platform/run-groups.ts';
import { groupsDirectory, groupsOf } from '../harness/cgroups.ts';
import { alive, fakeSystem, newOwner, onCleanup, start, startInnocent, tempDir, until } from './support.ts';

/** Starts a shell that leaves behind a process with neither its environment nor its parent, and exits. */
async function leaveOrphan(groups: RunGroups, run: string): Promise<number> {
  const shell = spawn('/bin/sh', ['-c', 'read go; (env -i setsid sh -c "echo \\$\\$; exec sleep 600" &)'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await groups.enter(run, Number(shell.pid));
  let output = '';
  shell.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  shell.stdin.end('go\n');
  await until('the orphan prints its pid', () => output.endsWith('\n'));
  onCleanup(() => thisSystem.kill(Number(output), 'SIGKILL'));
  return Number(output);
}

it('a process is traced to its session by the Claude Code above it while that lives, and by its cgroup until the run ends', async () => {
  const owner = new ProcessOwner({
    stateDir: tempDir(),
    warn: () => undefined,
    system: { ...thisSystem, ownGroup: () => undefined },
  });
  onCleanup(() => owner.release());
  const [run, foreign] = [randomUUID(), groupName(newOwner(), randomUUID())];
  owner.adopt(run, 'session-1');
  owner.spawned(run, 4711);
  const group = `0::/user.slice/${groupName(owner.id, run)}/${foreign}\n`;
  expect(owner.sessionOfProcess(4711)).toBe('session-1');
  expect(owner.sessionOfGroup(group)).toBe('session-1');
  expect(owner.sessionOfProcess(4712)).toBeUndefined();
  expect(owner.sessionOfGroup(`0::/${foreign}\n`)).toBeUndefined();
  expect(owner.sessionOfGroup(`0::/${groupName(owner.id, randomUUID())}\n`)).toBeUndefined();
  owner.exited(run);
  expect(owner.sessionOfProcess(4711)).toBeUndefined();
  expect(owner.sessionOfGroup(group)).toBe('session-1');
  await owner.stopRun(run, undefined);
  expect(owner.sessionOfGroup(group)).toBeUndefined();
});

describe('cgroups of runs', () => {
  it('hold processes that cannot be found otherwise, until the run ends', async (context) => {
    groupsDirectory(context);
    const [owner, first, second] = [newOwner(), randomUUID(), randomUUID()];
    const groups = new RunGroups(owner, thisSystem);
    const [one, two] = [await leaveOrphan(groups, first), await leaveOrphan(groups, second)];
    await groups.end(first);
    expect(await alive(one)).toBe(false);
    expect(await alive(two)).toBe(true);
    expect(groupsOf(owner)).toEqual([groupName(owner, second)]);
    await groups.endAll();
    expect(await alive(two)).toBe(false);
    expect(groupsOf(owner)).toEqual([]);
  });

  it('are removed with those of a nested server, without touching other owners', async (context) => {
    const parent = groupsDirectory(context);
    const [owner, other] = [newOwner(), newOwner()];
    const [mine, theirs] = [new RunGroups(owner, thisSystem), new RunGroups(other, thisSystem)];
    const theirOrphan = await leaveOrphan(theirs, randomUUID());
    const [run, inner] = [randomUUID(), randomUUID()];
    await mine.enter(run, Number(startInnocent().pid));
    const inside = new RunGroups(owner, { ...thisSystem, ownGroup: () => join(parent, groupName(owner, run)) });
    const orphan = await leaveOrphan(inside, inner);
    await endGroups(parent, owner);
    expect(await alive(orphan)).toBe(false);
    expect(groupsOf(owner)).toEqual([]);
    expect(await alive(theirOrphan)).toBe(true);
    await theirs.endAll();
  });

  it('are ended even if a process is still entering when its run or the server ends', async (context) => {
    groupsDirectory(context);
    const owner = newOwner();
    const groups = new RunGroups(owner, thisSystem);
    const [first, second] = [start('/bin/sleep', ['600']), start('/bin/sleep', ['600'])];
    const run = randomUUID();
    void groups.enter(run, Number(first.pid));
    await groups.end(run);
    expect(await alive(first.pid)).toBe(false);
    void groups.enter(randomUUID(), Number(second.pid));
    await groups.endAll();
    expect(await alive(second.pid)).toBe(false);
    expect(groupsOf(owner)).toEqual([]);
  });

  it('are not left behind for a process that has already exited', async (context) => {
    groupsDirectory(context);
    const owner = newOwner();
    await new RunGroups(owner, thisSystem).enter(randomUUID(), 2 ** 22 + 1);
    expect(groupsOf(owner)).toEqual([]);
  });

  it('are not created where the directory is not a cgroup or not writable', async () => {
    const [parent, run] = [tempDir(), randomUUID()];
    writeFileSync(join(parent, 'file'), '');
    const child = start('/bin/sleep', ['600']);
    for (const place of [parent, join(parent, 'missing'), join(parent, 'file'), undefined]) {
      const groups = new RunGroups(newOwner(), fakeSystem({ ownGroup: () => place }));
      void groups.enter(run, Number(child.pid));
      await groups.end(run);
      await groups.endAll();
    }
    expect(readdirSync(parent)).toEqual(['file']);
    expect(await alive(child.pid)).toBe(true);
  });

  it.each(['darwin', 'win32'] as const)('are not used on %s', (platform) => {
    expect(new RunGroups(newOwner(), fakeSystem({ platform })).parent).toBeUndefined();
  });

  it('are not ended for an owner id that could be used as a path', async () => {
    const parent = tempDir();
    mkdirSync(join(parent, groupName('..', 'x')), { recursive: true });
    await endGroups(parent, '..');
    expect(readdirSync(parent)).toHaveLength(1);
  });
});

describe('the process’s own cgroup', () => {
  const mount = (root: string, point: string): string =>
    `23 1 0:20 / / rw - ext4 /dev/vda rw\n31 23 0:28 ${root} ${point} rw,relatime shared:9 - cgroup2 cgroup2 rw\n`;

  it.each([
    ['the root', '0::/\n', mount('/', '/sys/fs/cgroup'), '/sys/fs/cgroup'],
    ['a scope next to version 1', '4:memory:/x\n0::/user.slice/a.scope\n', mount('/', '/u'), '/u/user.slice/a.scope'],
    ['a partial mount', '0::/docker/abc/inner\n', mount('/docker/abc', '/sys/fs/cgroup'), '/sys/fs/cgroup/inner'],
    ['a name with a space', '0::/a b\n', mount('/', '/my\\040groups'), '/my groups/a b'],
    ['a mount that does not contain it', '0::/user.slice\n', mount('/docker/abc', '/sys/fs/cgroup'), undefined],
    ['version 1 only', '4:memory:/x\n', mount('/', '/sys/fs/cgroup'), undefined],
    ['no mount', '0::/\n', '23 1 0:20 / / rw - ext4 /dev/vda rw\n', undefined],
  ])('is resolved for %s', (_, cgroup, mountinfo, directory) => {
    expect(ownGroupDirectory(cgroup, mountinfo)).toBe(directory);
  });

  it('contains this process', (context) => {
    const parent = groupsDirectory(context);
    const members = readFileSync(join(parent, 'cgroup.procs'), 'utf8').split('\n');
    expect(members).toContain(String(process.pid));
  });
});
