import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isAlive, signalIfSame, startedSince, startTimeOf } from '../../src/platform/processes.ts';
import { thisSystem } from '../../src/platform/system.ts';
import { alive, fakeSystem, start, startInnocent, until } from './support.ts';

describe('identity of a process', () => {
  it('is the pid and the kernel’s start time', async () => {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ');
    expect(await startTimeOf(process.pid)).toBe(fields?.[19]);
    expect(await isAlive({ pid: process.pid, startTime: String(fields?.[19]) })).toBe(true);
    expect(await isAlive({ pid: process.pid, startTime: '1' })).toBe(false);
  });

  it.each([0, -1, 1.5, NaN, 2 ** 31 - 1])('does not exist for pid %s', async (pid) => {
    expect(await startTimeOf(pid)).toBeUndefined();
  });

  it('is read correctly if the program’s name contains parentheses', async () => {
    const rest = Array.from({ length: 40 }, (_, index) => String(index + 3))
      .join(' ')
      .replace(/^3/, 'S');
    const system = fakeSystem({ stat: () => `7 (a) b ) S 1) ${rest}` });
    expect(await startTimeOf(7, system)).toBe('22');
  });

  it('does not exist for a zombie', async () => {
    // The shell execs sleep, which never reaps its child.
    const parent = start('/bin/sh', ['-c', 'sleep 0.01 & echo $!; exec sleep 600']);
    let zombie = 0;
    parent.stdout?.on('data', (chunk: Buffer) => (zombie = Number(chunk.toString())));
    await until('it is a zombie', () => zombie > 0 && thisSystem.stat(zombie)?.includes(') Z '));
    expect(await startTimeOf(zombie)).toBeUndefined();
  });

  it('is unknown, not gone, if it cannot be read', async () => {
    const noFiles = Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    const system = fakeSystem({
      stat: () => {
        throw noFiles;
      },
    });
    await expect(isAlive({ pid: 7, startTime: '1' }, system)).rejects.toThrow('EMFILE');
  });

  it('must match before a process is signalled, and the server never signals itself', async () => {
    const child = startInnocent();
    const pid = Number(child.pid);
    const startTime = String(await startTimeOf(pid));
    expect(await signalIfSame({ pid, startTime: String(Number(startTime) - 1) }, 'SIGKILL')).toBe(false);
    expect(await alive(pid)).toBe(true);
    expect(await signalIfSame({ pid, startTime }, 'SIGTERM')).toBe(true);
    await until('it has exited', async () => !(await alive(pid)));
    expect(await signalIfSame({ pid: process.pid, startTime: String(await startTimeOf(process.pid)) }, 'SIGKILL')).toBe(
      false,
    );
  });

  it.each([
    ['linux', '100', '99', true],
    ['linux', '100', '100', true],
    ['linux', '99', '100', false],
    ['linux', '1000', '999', true],
    ['linux', 'x', '1', false],
    ['win32', '638000000000000001', '638000000000000000', true],
    ['win32', '638000000000000000', '638000000000000001', false],
    ['darwin', 'Sun Nov 15 02:07:00 2026', 'Sun Nov 15 02:06:00 2026', true],
    ['darwin', 'Sun Nov 15 02:07:00 2026', 'Sun Nov 15 03:06:00 2026', false],
    ['darwin', 'nonsense', 'Sun Nov 15 03:06:00 2026', false],
  ] as const)('on %s %s started since %s: %s', (platform, startTime, since, expected) => {
    expect(startedSince(startTime, since, platform)).toBe(expected);
  });
});
