import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { findMarked, startTimeOf } from '../../src/platform/processes.ts';
import { stopTree } from '../../src/platform/stop-tree.ts';
import { thisSystem, type System } from '../../src/platform/system.ts';
import { alive, newOwner, startInnocent, startMarked, startTree, TREE_SIZE, until } from './support.ts';

const QUICK = { graceMs: 100, forceAfterMs: 400 };

function recording(overrides: Partial<System> = {}): { system: System; sent: string[] } {
  const sent: string[] = [];
  const kill: System['kill'] = (pid, signal) => {
    sent.push(`${signal} ${pid}`);
    return thisSystem.kill(pid, signal);
  };
  return { sent, system: { ...thisSystem, kill, ...overrides } };
}

describe('stopping a tree', () => {
  it('ends all of it, by force if necessary, and nothing else', async () => {
    const [owner, run, otherRun] = [newOwner(), randomUUID(), randomUUID()];
    const innocent = startInnocent();
    const other = startMarked(owner, otherRun, 'exec sleep 600');
    const root = await startTree(owner, run);
    const result = await stopTree({ owner, run, rootPid: root.pid }, QUICK);
    // The process that ignores SIGTERM restarts its child.
    expect(result.stopped + result.forced).toBeGreaterThanOrEqual(TREE_SIZE);
    expect(result.forced).toBeGreaterThan(0);
    expect(result.left).toBe(0);
    expect(await findMarked({ owner, run })).toEqual([]);
    expect(await alive(innocent.pid)).toBe(true);
    expect(await alive(other.pid)).toBe(true);
  });

  it('ends every run of the owner if no run is given, but no other owner’s', async () => {
    const [owner, stranger] = [newOwner(), newOwner()];
    startMarked(owner, randomUUID(), 'exec sleep 600');
    startMarked(owner, randomUUID(), 'exec sleep 600');
    startMarked(stranger, randomUUID(), 'exec sleep 600');
    await until(
      'all have started',
      async () => (await findMarked({ owner })).length + (await findMarked({ owner: stranger })).length === 3,
    );
    expect(await stopTree({ owner }, QUICK)).toEqual({ stopped: 2, forced: 0, left: 0 });
    expect(await findMarked({ owner: stranger })).toHaveLength(1);
  });

  it('signals the root first and gives it time to end its children', async () => {
    const [owner, run] = [newOwner(), randomUUID()];
    const root = startMarked(owner, run, 'sleep 600 & child=$!; trap "kill -KILL $child; exit 0" TERM; wait');
    await until('both have started', async () => (await findMarked({ owner })).length === 2);
    const { system, sent } = recording();
    const result = await stopTree({ owner, run, rootPid: root.pid }, { graceMs: 5_000, forceAfterMs: 8_000 }, system);
    expect(result).toEqual({ stopped: 2, forced: 0, left: 0 });
    expect(sent).toEqual([`SIGTERM ${root.pid}`]);
  });

  it('signals the rest once the root has exited without ending them', async () => {
    const [owner, run] = [newOwner(), randomUUID()];
    const root = startMarked(owner, run, 'setsid sleep 600 & wait');
    await until('both have started', async () => (await findMarked({ owner })).length === 2);
    const { system, sent } = recording();
    const options = { graceMs: 20_000, forceAfterMs: 20_000, signal: 'SIGHUP' } as const;
    const begin = performance.now();
    const result = await stopTree({ owner, run, rootPid: root.pid }, options, system);
    expect(performance.now() - begin).toBeLessThan(10_000);
    expect(result).toEqual({ stopped: 2, forced: 0, left: 0 });
    expect(sent[0]).toBe(`SIGHUP ${root.pid}`);
    expect(sent).toHaveLength(2);
  });

  it('catches processes started in the meantime', async () => {
    const [owner, run] = [newOwner(), randomUUID()];
    const root = startMarked(
      owner,
      run,
      'trap "setsid sleep 600 & setsid sleep 601 & exit 0" TERM; while :; do sleep 0.05; done',
    );
    await until('it has started', async () => (await findMarked({ owner })).length > 0);
    const result = await stopTree({ owner, run, rootPid: root.pid }, { graceMs: 2_000, forceAfterMs: 4_000 });
    expect(result.left).toBe(0);
    expect(await findMarked({ owner })).toEqual([]);
  });

  it('keeps track of a process that clears its environment', async () => {
    const [owner, run] = [newOwner(), randomUUID()];
    const root = startMarked(
      owner,
      run,
      `trap 'exec env -i sh -c "trap : TERM; while :; do sleep 0.05; done"' TERM; while :; do sleep 0.05; done`,
    );
    await until('it has started', async () => (await findMarked({ owner })).length > 0);
    const result = await stopTree({ owner, run, rootPid: root.pid }, QUICK);
    expect(result.left).toBe(0);
    expect(await alive(root.pid)).toBe(false);
  });

  it('does not signal a pid that has been reused in the meantime', async () => {
    const [owner, run] = [newOwner(), randomUUID()];
    const child = startMarked(owner, run, 'exec sleep 600');
    await until('it has started', async () => (await findMarked({ owner })).length === 1);
    const pid = Number(child.pid);
    const startTime = String(await startTimeOf(pid));
    // From the fourth read on, this pid has a later start time.
    let reads = 0;
    const { system, sent } = recording({
      stat: (asked) => {
        const stat = thisSystem.stat(asked);
        return asked === pid && ++reads > 3 ? stat?.replace(` ${startTime} `, ` ${Number(startTime) + 1} `) : stat;
      },
      environ: (asked) => (reads > 3 && asked === pid ? Promise.resolve(undefined) : thisSystem.environ(asked)),
    });
    const result = await stopTree({ owner, run, rootPid: pid }, QUICK, system);
    expect(reads).toBeGreaterThan(3);
    expect(sent).toEqual([]);
    expect(result.left).toBe(0);
    expect(await alive(pid)).toBe(true);
  });

  it('does not signal a root that cannot be identified', async () => {
    const innocent = startInnocent();
    const target = { owner: newOwner(), run: randomUUID(), rootPid: innocent.pid };
    expect(await stopTree(target, QUICK)).toEqual({ stopped: 0, forced: 0, left: 0 });
    const wrong = await stopTree({ ...target, rootStartTime: '1' }, QUICK);
    expect(wrong.left).toBe(0);
    expect(await alive(innocent.pid)).toBe(true);
  });

  it('stops a root that is identified by its start time alone', async () => {
    const child = startInnocent();
    const rootStartTime = await startTimeOf(Number(child.pid));
    const result = await stopTree({ owner: newOwner(), run: randomUUID(), rootPid: child.pid, rootStartTime }, QUICK);
    expect(result).toEqual({ stopped: 1, forced: 0, left: 0 });
  });

  it('gives up at the deadline and never throws', async () => {
    const [owner, run] = [newOwner(), randomUUID()];
    startMarked(owner, run, 'exec sleep 600');
    await until('it has started', async () => (await findMarked({ owner })).length === 1);
    const options = { graceMs: 0, forceAfterMs: 50, deadlineMs: 300 };
    const killsNothing = { ...thisSystem, kill: () => false };
    expect(await stopTree({ owner, run }, options, killsNothing)).toEqual({ stopped: 0, forced: 0, left: 1 });
    const listsNothing = { ...thisSystem, pids: () => Promise.reject(new Error('EMFILE')) };
    expect(await stopTree({ owner, run }, options, listsNothing)).toEqual({ stopped: 0, forced: 0, left: 0 });
  });
});
