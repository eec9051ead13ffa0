import { existsSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import * as fsPromises from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { AuditFileSystem } from '../../src/audit/audit-file.ts';
import type { AuditOptions } from '../../src/audit/audit-log.ts';
import { AT, entriesIn, entry, open, temporaryDirectory } from './audit-harness.ts';

describe('rotation', () => {
  const lineBytes = Buffer.byteLength(`${JSON.stringify({ time: AT, ...entry('call 0') })}\n`);

  async function recordOneByOne(file: string, count: number, options: Partial<AuditOptions>) {
    for (let index = 0; index < count; index++) {
      const { audit } = open(file, options);
      audit.record(entry(`call ${index}`));
      await audit.close();
    }
  }

  it('keeps a limited number of full files and drops the oldest', async () => {
    const directory = temporaryDirectory();
    const file = path.join(directory, 'audit.jsonl');
    await recordOneByOne(file, 9, { maxBytes: 2 * lineBytes, keep: 2 });
    expect(readdirSync(directory).sort()).toEqual(['audit.jsonl', 'audit.jsonl.1', 'audit.jsonl.2']);
    const whats = ['.2', '.1', ''].map((suffix) => entriesIn(file + suffix).map(({ what }) => what));
    expect(whats).toEqual([['call 4', 'call 5'], ['call 6', 'call 7'], ['call 8']]);
    expect(statSync(`${file}.1`).mode & 0o777).toBe(0o600);
  });

  it('keeps no rotated files with keep: 0', async () => {
    const directory = temporaryDirectory();
    const file = path.join(directory, 'audit.jsonl');
    await recordOneByOne(file, 3, { maxBytes: lineBytes, keep: 0 });
    expect(readdirSync(directory)).toEqual(['audit.jsonl']);
    expect(entriesIn(file).map(({ what }) => what)).toEqual(['call 2']);
  });

  it('keeps writing while another server rotates, and removes the lock of a dead one', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const lock = `${file}.lock`;
    writeFileSync(lock, '');
    await recordOneByOne(file, 2, { maxBytes: lineBytes });
    expect(entriesIn(file)).toHaveLength(2);
    const longAgo = new Date(Date.now() - 60_000);
    utimesSync(lock, longAgo, longAgo);
    await recordOneByOne(file, 2, { maxBytes: lineBytes });
    expect(existsSync(lock)).toBe(false);
    expect(entriesIn(`${file}.1`)).toHaveLength(3);
  });

  it('rotates within one server', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { audit } = open(file, { maxBytes: 2 * lineBytes });
    for (let index = 0; index < 3; index++) {
      audit.record(entry(`call ${index}`));
      await vi.waitFor(() => expect(entriesIn(file).at(-1)?.what).toBe(`call ${index}`), { timeout: 30_000 });
    }
    expect(entriesIn(`${file}.1`).map(({ what }) => what)).toEqual(['call 0', 'call 1']);
    await audit.close();
  });

  it('notices that its file was moved away, and starts a new one', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { audit } = open(file);
    audit.record(entry('one'));
    await vi.waitFor(() => expect(entriesIn(file)).toHaveLength(1), { timeout: 30_000 });
    renameSync(file, `${file}.moved`);
    const written = (): boolean => {
      audit.record(entry('on'));
      return existsSync(file);
    };
    await vi.waitFor(() => expect(written()).toBe(true), { timeout: 10_000 });
    await audit.close();
  });

  it('does not rotate a file that another server has just created', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    writeFileSync(file, 'x'.repeat(lineBytes));
    let rotatedByOther = false;
    const fileSystem: AuditFileSystem = {
      ...fsPromises,
      open: async (name, flags, mode) => {
        if (name.endsWith('.lock') && !rotatedByOther) {
          rotatedByOther = true;
          await fsPromises.rename(file, `${file}.1`);
          writeFileSync(file, '');
        }
        return fsPromises.open(name, flags, mode);
      },
    };
    await recordOneByOne(file, 1, { maxBytes: lineBytes, fileSystem });
    expect(rotatedByOther).toBe(true);
    expect(existsSync(`${file}.2`)).toBe(false);
    expect(entriesIn(file)).toHaveLength(1);
  });

  it('keeps writing if it cannot rotate', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const rename = () => Promise.reject(new Error('EPERM'));
    await recordOneByOne(file, 3, { maxBytes: lineBytes, fileSystem: { ...fsPromises, rename } });
    expect(entriesIn(file)).toHaveLength(3);
    expect(existsSync(`${file}.lock`)).toBe(false);
  });
});
