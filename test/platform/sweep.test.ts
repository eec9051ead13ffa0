import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findMarked, startTimeOf } from '../../src/platform/processes.ts';
import {
  recordOwner,
  recordPath,
  removeOwner,
  thisPlace,
  type OwnerRecord,
  sweep,
} from '../../src/platform/owner-records.ts';
import { fakeSystem, newOwner, startInnocent, startTree, tempDir, TREE_SIZE } from './support.ts';

const stop = { graceMs: 0, forceAfterMs: 300 };

/** Writes the record of a dead server: this pid with another start time. */
async function writeRecord(stateDir: string, ownerId: string, change: Partial<OwnerRecord> = {}): Promise<void> {
  const startTime = String(Number(await startTimeOf(process.pid)) - 1);
  const record: OwnerRecord = {
    ownerId,
    pid: process.pid,
    startTime,
    place: thisPlace(),
    at: Date.now(),
    roots: [],
    ...change,
  };
  mkdirSync(join(stateDir, 'owners'), { recursive: true });
  writeFileSync(recordPath(stateDir, ownerId), JSON.stringify(record));
}

describe('an owner’s record', () => {
  it('is written and removed, and leaves no other file', async () => {
    const [stateDir, owner] = [join(tempDir(), 'new', 'state'), newOwner()];
    expect(await recordOwner(stateDir, owner)).toBeUndefined();
    expect(readdirSync(join(stateDir, 'owners'))).toEqual([`${owner}.json`]);
    expect(JSON.parse(readFileSync(recordPath(stateDir, owner), 'utf8'))).toMatchObject({
      ownerId: owner,
      pid: process.pid,
      startTime: await startTimeOf(process.pid),
    });
    expect(await removeOwner(stateDir, owner)).toBeUndefined();
    expect(await removeOwner(stateDir, owner)).toBeUndefined();
    expect(readdirSync(join(stateDir, 'owners'))).toEqual([]);
  });

  it('that cannot be written or removed is reported, not thrown', async () => {
    const file = join(tempDir(), 'file');
    writeFileSync(file, '');
    expect(await recordOwner(file, newOwner())).toMatch(/ENOTDIR|EEXIST/);
    expect(await removeOwner(file, newOwner())).toMatch(/ENOTDIR/);
    expect(await recordOwner('/proc/nowhere', newOwner())).toMatch(/ENOENT|EACCES|EROFS/);
    expect(await recordOwner(tempDir(), '../../escape')).toContain('marker');
  });
});

describe('sweep', () => {
  it('ends what a dead server left behind', async () => {
    const [stateDir, owner] = [tempDir(), newOwner()];
    const innocent = startInnocent();
    await startTree(owner, randomUUID());
    await writeRecord(stateDir, owner);
    const result = await sweep({ stateDir, stop });
    expect(result).toMatchObject({ swept: [owner], problems: [] });
    expect(result.stopped + result.forced).toBeGreaterThanOrEqual(TREE_SIZE);
    expect(await findMarked({ owner })).toEqual([]);
    expect(existsSync(recordPath(stateDir, owner))).toBe(false);
    expect(await startTimeOf(Number(innocent.pid))).toBeDefined();
  });

  it('does not touch an owner whose server is alive', async () => {
    const [stateDir, owner, dead] = [tempDir(), newOwner(), newOwner()];
    await startTree(owner, randomUUID());
    await recordOwner(stateDir, owner);
    await writeRecord(stateDir, dead);
    expect(await sweep({ stateDir, stop })).toEqual({ stopped: 0, forced: 0, swept: [dead], problems: [] });
    expect(await findMarked({ owner })).toHaveLength(TREE_SIZE);
    expect(existsSync(recordPath(stateDir, owner))).toBe(true);
  });

  it.each([
    ['another container', { namespace: 'pid:[1]' }],
    ['another machine', { host: 'elsewhere', boot: 'other' }],
  ])('keeps a record from %s until it is a month old, and ends nothing', async (_, place) => {
    const [stateDir, owner] = [tempDir(), newOwner()];
    await startTree(owner, randomUUID());
    await writeRecord(stateDir, owner, { place: { ...thisPlace(), ...place } });
    expect(await sweep({ stateDir, stop })).toEqual({ stopped: 0, forced: 0, swept: [], problems: [] });
    expect(existsSync(recordPath(stateDir, owner))).toBe(true);
    await writeRecord(stateDir, owner, { place: { ...thisPlace(), ...place }, at: Date.now() - 31 * 24 * 3_600_000 });
    expect(await sweep({ stateDir, stop })).toEqual({ stopped: 0, forced: 0, swept: [owner], problems: [] });
    expect(await findMarked({ owner })).toHaveLength(TREE_SIZE);
  });

  it('treats a server from before a reboot as dead, even if pid and start time match', async () => {
    const [stateDir, owner] = [tempDir(), newOwner()];
    const startTime = String(await startTimeOf(process.pid));
    await writeRecord(stateDir, owner, { startTime, place: { ...thisPlace(), boot: 'before' } });
    expect(await sweep({ stateDir, stop })).toMatchObject({ swept: [owner], problems: [] });
  });

  it('skips and reports invalid records', async () => {
    const [stateDir, dead] = [tempDir(), newOwner()];
    await writeRecord(stateDir, dead);
    const broken = {
      'broken-json': '{"pid":',
      'broken-empty': '',
      'broken-null': 'null',
      'broken-shape': '{"pid":"1"}',
    };
    for (const [name, text] of Object.entries(broken)) writeFileSync(recordPath(stateDir, name), text);
    mkdirSync(recordPath(stateDir, 'a-directory'));
    writeFileSync(join(stateDir, 'owners', 'draft.json.tmp'), 'half');
    const result = await sweep({ stateDir, stop });
    expect(result.swept).toEqual([dead]);
    expect(result.problems).toHaveLength(5);
    expect(readdirSync(join(stateDir, 'owners')).sort()).toEqual(['a-directory.json', 'draft.json.tmp']);
  });

  it.skipIf(process.platform === 'win32')(
    'neither blocks on a pipe nor follows a symlink among the records',
    async () => {
      const [stateDir, dead] = [tempDir(), newOwner()];
      await writeRecord(stateDir, dead);
      const [pipe, link] = [recordPath(stateDir, 'a-pipe-there'), recordPath(stateDir, 'a-link-there')];
      execFileSync('mkfifo', [pipe]);
      writeFileSync(join(stateDir, 'elsewhere'), 'kept');
      symlinkSync(join(stateDir, 'elsewhere'), link);
      const result = await sweep({ stateDir, stop });
      expect(result.swept).toEqual([dead]);
      expect(result.problems.map(({ path }) => path).sort()).toEqual([link, pipe]);
      expect(readdirSync(join(stateDir, 'owners'))).toEqual([]);
      expect(readFileSync(join(stateDir, 'elsewhere'), 'utf8')).toBe('kept');
    },
  );

  it('rejects a record whose owner does not match its file name', async () => {
    const [stateDir, owner] = [tempDir(), newOwner()];
    await writeRecord(stateDir, owner, { ownerId: newOwner() });
    expect(await sweep({ stateDir, stop })).toMatchObject({
      swept: [],
      problems: [{ path: recordPath(stateDir, owner) }],
    });
  });

  it('does nothing without a state directory, and reports one that is not a directory', async () => {
    const dir = tempDir();
    expect(await sweep({ stateDir: join(dir, 'missing') })).toEqual({ stopped: 0, forced: 0, swept: [], problems: [] });
    writeFileSync(join(dir, 'file'), '');
    expect((await sweep({ stateDir: join(dir, 'file') })).problems).toHaveLength(1);
  });

  it('touches nothing if it cannot tell whether the server is alive', async () => {
    const [stateDir, owner] = [tempDir(), newOwner()];
    await writeRecord(stateDir, owner);
    const system = fakeSystem({
      stat: () => {
        throw new Error('EMFILE');
      },
    });
    const result = await sweep({ stateDir, stop }, system);
    expect(result).toMatchObject({ swept: [], problems: [{ problem: 'EMFILE' }] });
    expect(existsSync(recordPath(stateDir, owner))).toBe(true);
  });
});
