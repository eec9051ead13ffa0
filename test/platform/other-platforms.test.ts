import { join } from 'node:path';
import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ProcessOwner } from '../../src/platform/process-owner.ts';
import { findMarked, isAlive, startTimeOf } from '../../src/platform/processes.ts';
import { readOwner, recordedOwners, recordPath, thisPlace, sweep } from '../../src/platform/owner-records.ts';
import { stopTree } from '../../src/platform/stop-tree.ts';
import type { System } from '../../src/platform/system.ts';
import { watchdogCommand } from '../../src/platform/watchdog-script.ts';
import { windowsTree } from '../../src/platform/windows-processes.ts';
import { fakeSystem, onCleanup, tempDir, until } from './support.ts';

const STARTED = 'Sun Nov 15 02:07:00 2026';
const marker = (owner: string, run: string): string =>
  ` HOME=/u CLAUDE_CODE_MCP_OWNER=${owner} CLAUDE_CODE_MCP_SESSION=${run} PATH=/bin`;

interface Mac {
  pid: number;
  parent: number;
  command: string;
  environment?: string;
  state?: string;
}

function mac(processes: () => Mac[]): { system: System; commands: string[]; killed: string[] } {
  const commands: string[] = [];
  const killed: string[] = [];
  const run: System['run'] = (file, args) => {
    commands.push([file, ...args].join(' '));
    const asked = args.includes('-p') ? args[args.indexOf('-p') + 1]?.split(',').map(Number) : undefined;
    const lines = processes()
      .filter(({ pid }) => asked?.includes(pid) ?? true)
      .map(
        ({ pid, parent, command, environment = '', state = 'S' }) =>
          `${String(pid).padStart(5)} ${String(parent).padStart(5)} ${state}    ${STARTED} ${command}${args.includes('-E') ? environment : ''}`,
      );
    return Promise.resolve(`${lines.join('\n')}\n`);
  };
  const kill: System['kill'] = (pid, signal) => killed.push(`${signal} ${pid}`) > 0;
  return { commands, killed, system: fakeSystem({ platform: 'darwin', pid: 100, run, kill }) };
}

describe('macOS', () => {
  const session: Mac[] = [
    { pid: 1, parent: 0, command: '/sbin/launchd' },
    { pid: 100, parent: 1, command: 'node server.js' },
    { pid: 101, parent: 100, command: '/bin/sh -c … ccmcp-session-watchdog' },
    { pid: 200, parent: 100, command: 'claude --resume x', environment: marker('owner-a', 'run-1') },
    { pid: 201, parent: 200, command: '/bin/zsh -c sleep 9' },
    { pid: 202, parent: 201, command: 'sleep 9' },
    { pid: 203, parent: 200, command: 'node nested.js', environment: marker('owner-a', 'run-1') },
    { pid: 204, parent: 203, command: '/bin/sh -c … ccmcp-session-watchdog' },
    { pid: 205, parent: 204, command: 'sleep 0.2' },
    { pid: 206, parent: 203, command: 'claude', environment: marker('owner-b', 'run-9') },
    { pid: 207, parent: 206, command: '/bin/zsh -c make' },
    { pid: 208, parent: 1, command: 'node daemon.js', environment: marker('owner-a', 'run-1') },
    { pid: 209, parent: 200, command: '(done)', state: 'Z' },
    { pid: 300, parent: 1, command: `grep x ${marker('owner-a', 'run-1')}`, environment: ' HOME=/u' },
    { pid: 301, parent: 1, command: 'claude', environment: marker('owner-a', 'run-2') },
  ];

  it('runs ps twice and follows parents where the environment is hidden', async () => {
    const { system, commands } = mac(() => session);
    const found = await findMarked({ owner: 'owner-a', run: 'run-1' }, system);
    expect(found.map(({ pid }) => pid)).toEqual([200, 201, 202, 203, 208]);
    expect(found[1]).toEqual({ pid: 201, startTime: STARTED, owner: 'owner-a', run: 'run-1' });
    expect(commands).toEqual([
      'ps -A -ww -o pid=,ppid=,stat=,lstart=,command=',
      'ps -A -E -ww -o pid=,ppid=,stat=,lstart=,command=',
    ]);
    expect((await findMarked({ owner: 'owner-b' }, system)).map(({ pid }) => pid)).toEqual([206, 207]);
    expect((await findMarked({}, system)).map(({ pid }) => pid)).toEqual([200, 201, 202, 203, 206, 207, 208, 301]);
  });

  it('identifies a process by its pid and start time', async () => {
    const { system } = mac(() => session);
    expect(await startTimeOf(200, system)).toBe(STARTED);
    expect(await startTimeOf(209, system)).toBeUndefined();
    expect(await startTimeOf(999, system)).toBeUndefined();
    expect(await isAlive({ pid: 200, startTime: 'Sun Nov 15 02:06:59 2026' }, system)).toBe(false);
  });

  it('also stops children whose parent has already exited', async () => {
    const gone = new Set<number>();
    const { system, killed } = mac(() =>
      session.filter(({ pid }) => !gone.has(pid)).map((row) => (gone.has(row.parent) ? { ...row, parent: 1 } : row)),
    );
    const kill: System['kill'] = (pid, signal) => {
      killed.push(`${signal} ${pid}`);
      if (signal === 'SIGKILL' || (pid !== 202 && signal === 'SIGTERM')) gone.add(pid);
      return true;
    };
    const options = { graceMs: 50, forceAfterMs: 200 };
    const result = await stopTree({ owner: 'owner-a', run: 'run-1', rootPid: 200 }, options, { ...system, kill });
    expect(result).toEqual({ stopped: 4, forced: 1, left: 0 });
    expect(killed[0]).toBe('SIGTERM 200');
    expect(killed.slice(-2)).toEqual(['SIGSTOP 202', 'SIGKILL 202']);
    expect([...gone].sort()).toEqual([200, 201, 202, 203, 208]);
  });

  it('uses a shell script as the watchdog', () => {
    const { file, args } = watchdogCommand('darwin');
    expect([file, args[0], args[2]]).toEqual(['/bin/sh', '-c', 'ccmcp-session-watchdog']);
    expect(args[1]).toContain('ps -A -ww');
    expect(args[1]).not.toContain('/proc');
  });
});

describe('Windows', () => {
  const at = (pid: number, parent: number, startTime: number): { pid: number; parent: number; startTime: string } => ({
    pid,
    parent,
    startTime: String(startTime),
  });

  it.each([
    ['descendants', [at(1, 0, 1), at(10, 1, 100), at(11, 10, 101), at(12, 11, 102), at(20, 1, 103)], [10, 11, 12]],
    ['no process older than its parent', [at(10, 1, 100), at(11, 10, 99)], [10]],
    ['orphans of a dead root', [at(11, 10, 101)], [11]],
    ['no children of a later process with the same pid', [at(10, 1, 200), at(11, 10, 101), at(12, 10, 201)], [11]],
    ['each process of a cycle once', [at(10, 11, 100), at(11, 10, 100)], [10, 11]],
  ])('finds %s', (_, all, expected) => {
    expect(windowsTree(all, { pid: 10, startTime: '100' }).map(({ pid }) => pid)).toEqual(expected);
  });

  function windows(
    processes: Map<number, ReturnType<typeof at>>,
    survivesTree: number[] = [],
  ): { system: System; commands: string[] } {
    const commands: string[] = [];
    const run: System['run'] = (file, args) => {
      if (file === 'powershell.exe') {
        const only = [...String(args.at(-1)).matchAll(/ProcessId=(\d+)/g)].map(([, pid]) => Number(pid));
        const rows = [...processes.values()].filter(({ pid }) => only.length === 0 || only.includes(pid));
        return Promise.resolve(rows.map(({ pid, parent, startTime }) => `${pid} ${parent} ${startTime}\r\n`).join(''));
      }
      commands.push([file, ...args].join(' '));
      const root = Number(args.at(-1));
      const all = [...processes.values()];
      const victims = args.includes('/T')
        ? windowsTree(all, processes.get(root) ?? at(0, 0, 0))
        : all.filter(({ pid }) => pid === root);
      for (const { pid } of victims) if (!args.includes('/T') || !survivesTree.includes(pid)) processes.delete(pid);
      return Promise.resolve('');
    };
    return { commands, system: fakeSystem({ platform: 'win32', pid: 5, run }) };
  }
  const table = (): Map<number, ReturnType<typeof at>> =>
    new Map(
      [at(5, 1, 50), at(10, 5, 100), at(11, 10, 101), at(12, 11, 102), at(20, 1, 103)].map((row) => [row.pid, row]),
    );

  it('kills the tree, then what is left of it', async () => {
    const processes = table();
    const { system, commands } = windows(processes, [12]);
    const result = await stopTree({ owner: 'o', run: 'r', rootPid: 10 }, { graceMs: 0, forceAfterMs: 1_000 }, system);
    expect(result).toEqual({ stopped: 0, forced: 3, left: 0 });
    expect(commands).toEqual(['taskkill /T /F /PID 10', 'taskkill /F /PID 12']);
    expect([...processes.keys()]).toEqual([5, 20]);
  });

  it('does nothing without a root, or if its pid belongs to another process', async () => {
    const { system, commands } = windows(table());
    const options = { graceMs: 0, forceAfterMs: 0, deadlineMs: 50 };
    expect(await stopTree({ owner: 'o', run: 'r' }, options, system)).toEqual({ stopped: 0, forced: 0, left: 0 });
    await stopTree({ owner: 'o', run: 'r', rootPid: 10, rootStartTime: '7' }, options, system);
    await stopTree({ owner: 'o', run: 'r', rootPid: 999 }, options, system);
    expect(commands).toEqual([]);
  });

  it('does not throw if no command can be run', async () => {
    const system = fakeSystem({ platform: 'win32', run: () => Promise.reject(new Error('ENOENT')) });
    const result = await stopTree(
      { owner: 'o', run: 'r', rootPid: 10 },
      { graceMs: 0, forceAfterMs: 0, deadlineMs: 20 },
      system,
    );
    expect(result).toEqual({ stopped: 0, forced: 0, left: 0 });
  });

  it('finds what a killed root has left behind', async () => {
    const stateDir = tempDir();
    const processes = table();
    const owner = new ProcessOwner({ stateDir, warn: (line) => expect.fail(line), system: windows(processes).system });
    onCleanup(() => owner.release());
    owner.adopt('run-of-windows', 'a-session');
    owner.spawned('run-of-windows', 10);
    await until('the root is recorded', async () => {
      const record = await readOwner(stateDir, owner.id).catch(() => undefined);
      return typeof record === 'object' && record.roots.some(({ pid, startTime }) => pid === 10 && startTime === '100');
    });
    processes.delete(10);
    await owner.stopRun('run-of-windows', 10);
    expect([...processes.keys()]).toEqual([5, 20]);
    await owner.release();
    expect(await recordedOwners(stateDir)).toEqual([]);
  });

  it('looks up one process by pid', async () => {
    const { system } = windows(table());
    expect(await startTimeOf(11, system)).toBe('101');
    expect(await startTimeOf(999, system)).toBeUndefined();
  });

  it('sweeps the roots that are still alive', async () => {
    const [stateDir, ownerId] = [tempDir(), 'owner-windows'];
    const roots = [
      { pid: 10, startTime: '100' },
      { pid: 20, startTime: '7' },
    ];
    mkdirSync(join(stateDir, 'owners'));
    const record = { ownerId, pid: 4, startTime: '9', place: thisPlace(), at: Date.now(), roots };
    writeFileSync(recordPath(stateDir, ownerId), JSON.stringify(record));
    const processes = table();
    const result = await sweep({ stateDir }, windows(processes).system);
    expect(result).toEqual({ stopped: 0, forced: 3, swept: [ownerId], problems: [] });
    expect([...processes.keys()]).toEqual([5, 20]);
  });
});
