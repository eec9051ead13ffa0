import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import * as fsPromises from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { digest, type NewAuditEntry, openAudit } from '../../src/audit/audit-log.ts';
import type { AuditFileSystem } from '../../src/audit/audit-file.ts';
import { AT, entriesIn, entry, open, temporaryDirectory } from './audit-harness.ts';

/** The real file system, except that `write` can be made to fail or to accept only some bytes. */
function breakableFileSystem() {
  const state: { fault: string | undefined; takesOnly: number; attempts: number } = {
    fault: undefined,
    takesOnly: Number.POSITIVE_INFINITY,
    attempts: 0,
  };
  const fileSystem: AuditFileSystem = {
    ...fsPromises,
    open: async (file, flags, mode) => {
      const handle = await fsPromises.open(file, flags, mode);
      return {
        close: async () => {
          await handle.close();
          state.attempts++;
        },
        write: (bytes) => {
          if (state.fault !== undefined) throw Object.assign(new Error(state.fault), { code: state.fault });
          return handle.write(bytes.subarray(0, state.takesOnly));
        },
      };
    },
  };
  return { state, fileSystem };
}

describe('writing', () => {
  it('keeps the order and has written everything once closed', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { audit, warnings } = open(file);
    const names = Array.from({ length: 5000 }, (_, index) => `call ${index}`);
    for (const name of names) audit.record(entry(name));
    expect(existsSync(file)).toBe(false);
    await audit.close();
    expect(entriesIn(file).map(({ what }) => what)).toEqual(names);
    expect(entriesIn(file)[0]).toEqual({ time: AT, kind: 'tool_call', who: 'caller', what: 'call 0' });
    expect(warnings).toEqual([]);
  });

  it('writes without being closed', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { audit } = open(file);
    audit.record({
      ...entry('one'),
      session: 's',
      outcome: 'ok',
      cost: 0.5,
      details: { prompt: digest('hi') },
    });
    await vi.waitFor(() => expect(existsSync(file) && entriesIn(file)).toHaveLength(1), { timeout: 30_000 });
    await audit.close();
  });

  it('creates a file and directories that only their owner can read', async () => {
    const root = temporaryDirectory();
    const file = path.join(root, 'state', 'deep', 'audit.jsonl');
    const { audit } = open(file);
    audit.record(entry('one'));
    await audit.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    expect(statSync(path.join(root, 'state')).mode & 0o777).toBe(0o700);
  });

  it('appends to an existing file, and does nothing when off', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    for (const name of ['one', 'two']) {
      const { audit } = open(file);
      audit.record(entry(name));
      await audit.close();
      await audit.close();
      audit.record(entry('too late'));
    }
    expect(entriesIn(file).map(({ what }) => what)).toEqual(['one', 'two']);
    const { audit } = open('off');
    audit.record(entry('one'));
    await audit.close();
    expect(existsSync('off')).toBe(false);
  });

  it('records an entry whose details cannot be serialised', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { audit } = open(file);
    const circular: Record<string, never> = {};
    Object.assign(circular, { circular });
    audit.record({ ...entry('circular'), details: circular });
    audit.record({ ...entry('huge'), details: { text: 'x'.repeat(100_000) } });
    audit.record(entry('w'.repeat(100_000)));
    audit.record({ what: 1 } as unknown as NewAuditEntry);
    audit.record(entry('after'));
    await audit.close();
    const [first, second, third, fourth] = entriesIn(file);
    expect(first).toMatchObject({ dropped: 1, what: 'circular', details: { omitted: true } });
    expect(second).toMatchObject({ what: 'huge', details: { omitted: true } });
    expect(third?.what).toHaveLength(1001);
    expect(fourth?.what).toBe('after');
  });

  it('stores a digest of a text instead of the text', () => {
    expect(digest('secret')).toEqual({ chars: 6, sha256: '2bb80d537b1da3e3' });
  });
});

describe('a file system that fails', () => {
  it('warns once per failure, retries with the next entry and loses nothing', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { state, fileSystem } = breakableFileSystem();
    const { audit, warnings } = open(file, { fileSystem });
    const recordAndSettle = async (what: string) => {
      const attempts = state.attempts;
      audit.record(entry(what));
      await vi.waitFor(() => expect(state.attempts).toBeGreaterThan(attempts), { timeout: 30_000 });
    };
    state.fault = 'EROFS';
    await recordAndSettle('one');
    await recordAndSettle('two');
    expect(warnings).toEqual([`audit log: cannot write to ${file}: EROFS; entries are kept in memory and retried`]);
    state.fault = undefined;
    audit.record(entry('three'));
    await vi.waitFor(() => expect(entriesIn(file)).toHaveLength(3), { timeout: 30_000 });
    state.fault = 'ENOSPC';
    await recordAndSettle('four');
    await vi.waitFor(() => expect(warnings).toHaveLength(2), { timeout: 30_000 });
    state.fault = undefined;
    await audit.close();
    expect(entriesIn(file).map(({ what }) => what)).toEqual(['one', 'two', 'three', 'four']);
    expect(warnings).toHaveLength(2);
  });

  it('drops the oldest entries beyond the limit and records how many', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { state, fileSystem } = breakableFileSystem();
    const { audit } = open(file, { fileSystem, maxQueued: 3 });
    state.fault = 'ENOSPC';
    for (let index = 0; index < 10; index++) audit.record(entry(`call ${index}`));
    await vi.waitFor(() => expect(state.attempts).toBe(1), { timeout: 30_000 });
    audit.record(entry('call 10'));
    await vi.waitFor(() => expect(state.attempts).toBe(2), { timeout: 30_000 });
    state.fault = undefined;
    await audit.close();
    expect(entriesIn(file).map(({ what, dropped }) => [what, dropped])).toEqual([
      ['call 8', 8],
      ['call 9', undefined],
      ['call 10', undefined],
    ]);
  });

  it('ends a line cut short by a full disk, and rewrites it', async () => {
    const file = path.join(temporaryDirectory(), 'audit.jsonl');
    const { state, fileSystem } = breakableFileSystem();
    const { audit, warnings } = open(file, { fileSystem });
    const line = JSON.stringify({ time: AT, ...entry('é one') });
    state.takesOnly = Buffer.byteLength(`${line}\n`) + 10;
    audit.record(entry('é one'));
    audit.record(entry('two'));
    await vi.waitFor(() => expect(warnings).toHaveLength(1), { timeout: 30_000 });
    state.takesOnly = Number.POSITIVE_INFINITY;
    audit.record(entry('three'));
    await audit.close();
    const [first, torn, ...others] = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(first).toBe(line);
    expect(torn).toHaveLength(10);
    expect(others.map((text) => (JSON.parse(text) as { what: string }).what)).toEqual(['two', 'three']);
  });

  it.skipIf(process.platform !== 'linux')('survives a full device', async () => {
    const { audit, warnings } = open('/dev/full');
    audit.record(entry('one'));
    await audit.close();
    expect(warnings[0]).toContain('ENOSPC');
  });

  it('survives a path below a regular file', async () => {
    const blocker = path.join(temporaryDirectory(), 'file');
    writeFileSync(blocker, '');
    const { audit, warnings } = open(path.join(blocker, 'audit.jsonl'));
    audit.record(entry('one'));
    await audit.close();
    expect(warnings[0]).toContain('ENOTDIR');
    expect(warnings.at(-1)).toContain('closed before everything was written');
    for (const line of warnings) expect(line).not.toContain('\n');
  });

  it('abandons a hanging write on close, even if the warning fails', async () => {
    const fileSystem: AuditFileSystem = { ...fsPromises, open: () => new Promise(() => undefined) };
    const { audit, warnings } = open('/nowhere/audit.jsonl', { fileSystem, closeWithinMs: 1 });
    audit.record(entry('one'));
    await audit.close();
    expect(warnings).toHaveLength(1);
    const unwritable = openAudit({
      path: '/dev/null/x',
      warn: () => {
        throw new Error('EPIPE');
      },
    });
    unwritable.record(entry('one'));
    await expect(unwritable.close()).resolves.toBeUndefined();
  });
});
