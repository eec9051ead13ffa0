import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { findMarked, startTimeOf } from '../../src/platform/processes.ts';
import { markerEnv, OWNER_MARKER, RUN_MARKER } from '../../src/platform/system.ts';
import { fakeSystem, newOwner, start, startInnocent, startMarked, startTree, TREE_SIZE, until } from './support.ts';

const statOf = (startTime: number): string =>
  `1 (x) S ${Array.from({ length: 18 }, () => '0').join(' ')} ${startTime} 0`;

describe('marker', () => {
  it('consists of two variables', () => {
    expect(markerEnv('owner-12345', 'run-12345')).toEqual({ [OWNER_MARKER]: 'owner-12345', [RUN_MARKER]: 'run-12345' });
  });

  it.each(['', 'short', 'has space in it', 'new\nline-12345', '../../etc/passwd', '$(reboot)-12345', '-leading-dash'])(
    'refuses the id %j',
    (id) => {
      expect(() => markerEnv(id, randomUUID())).toThrow(TypeError);
      expect(() => markerEnv(randomUUID(), id)).toThrow(TypeError);
    },
  );
});

describe('finding marked processes', () => {
  it('finds a whole tree across sessions, and nothing else', async () => {
    const [owner, run, otherRun] = [newOwner(), randomUUID(), randomUUID()];
    const innocent = startInnocent();
    const root = await startTree(owner, run);
    const other = startMarked(owner, otherRun, 'exec sleep 600');
    await until('the other run has started', async () => (await findMarked({ run: otherRun })).length === 1);

    const found = await findMarked({ owner, run });
    expect(found).toHaveLength(TREE_SIZE);
    expect(found).toContainEqual({ pid: root.pid, startTime: await startTimeOf(Number(root.pid)), owner, run });
    const all = (await findMarked({ owner })).map(({ pid }) => pid);
    expect(all).toHaveLength(TREE_SIZE + 1);
    expect(all).toContain(other.pid);
    expect(all).not.toContain(innocent.pid);
    expect(await findMarked({ owner: newOwner() })).toEqual([]);
  });

  it('ignores text that only looks like the marker', async () => {
    const owner = newOwner();
    start('/bin/sleep', ['600'], { env: { [`X_${OWNER_MARKER}`]: owner, NOTE: `${OWNER_MARKER}=${owner}` } });
    start(process.execPath, ['-e', 'setInterval(() => {}, 60000)', `${OWNER_MARKER}=${owner}`]);
    start('/bin/sleep', ['600'], { env: { [OWNER_MARKER]: `${owner}-more` } });
    expect(await findMarked({ owner })).toEqual([]);
  });

  it('leaves out processes older than the server', async () => {
    const owner = newOwner();
    const child = startMarked(owner, randomUUID(), 'exec sleep 600');
    await until('it has started', async () => (await findMarked({ owner })).length === 1);
    const startTime = Number(await startTimeOf(Number(child.pid)));
    expect(await findMarked({ owner, since: String(startTime) })).toHaveLength(1);
    expect(await findMarked({ owner, since: String(startTime + 1) })).toEqual([]);
  });

  it('drops a pid that is reused while it is being read', async () => {
    const marked = Buffer.from(`A=1\0${OWNER_MARKER}=o\0${RUN_MARKER}=r\0`);
    let reads = 0;
    const system = fakeSystem({
      pids: () => Promise.resolve([5, 6, 1]),
      environ: (pid) => Promise.resolve(pid === 5 && ++reads > 1 ? Buffer.from('A=1\0') : marked),
      stat: () => statOf(77),
    });
    expect(await findMarked({}, system)).toEqual([{ pid: 6, startTime: '77', owner: 'o', run: 'r' }]);
  });

  it('fails if processes cannot be listed', async () => {
    await expect(findMarked({}, fakeSystem({ pids: () => Promise.reject(new Error('EMFILE')) }))).rejects.toThrow(
      'EMFILE',
    );
  });

  it('finds nothing by marker on Windows', async () => {
    expect(await findMarked({}, fakeSystem({ platform: 'win32' }))).toEqual([]);
  });
});
