import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { openAudit } from '../../src/audit/audit-log.ts';
import { readAudit } from '../../src/audit/report.ts';
import { bundle } from '../harness/bundle.ts';
import { entriesIn, temporaryDirectory } from './audit-harness.ts';

const WRITERS = ['one', 'two', 'three'];
const ENTRIES_EACH = 400;

/** Enough that none is deleted; opening a log checks for each of them. */
const KEPT_FILES = 150;

async function expectEveryEntryOnce(file: string): Promise<void> {
  const { entries, unreadableLines } = await readAudit(file);
  expect(unreadableLines).toBe(0);
  const expected = Array.from({ length: ENTRIES_EACH }, (_, index) => String(index));
  for (const writer of WRITERS) {
    const written = entries.filter(({ session }) => session === writer).map(({ what }) => what);
    expect(written.sort((a, b) => Number(a) - Number(b))).toEqual(expected);
  }
  expect(existsSync(`${file}.lock`)).toBe(false);
}

it('keeps every line intact while several processes write and rotate', async () => {
  const directory = temporaryDirectory();
  const script = await bundle(path.join(import.meta.dirname, 'audit-writer.ts'), path.join(directory, 'bundle'));
  const file = path.join(directory, 'log', 'audit.jsonl');
  const exits = await Promise.all(
    WRITERS.map((name) => once(fork(script, [file, name, String(ENTRIES_EACH), '20000', String(KEPT_FILES)]), 'exit')),
  );
  expect(exits.map(([code]) => code as number)).toEqual(WRITERS.map(() => 0));
  const { length } = readdirSync(path.dirname(file));
  expect(length).toBeGreaterThan(5);
  expect(length).toBeLessThan(KEPT_FILES);
  await expectEveryEntryOnce(file);
});

it('keeps every line intact while several logs in one process write and rotate', async () => {
  const file = path.join(temporaryDirectory(), 'audit.jsonl');
  const warnings: string[] = [];
  const audits = WRITERS.map((name) => ({
    name,
    audit: openAudit({
      path: file,
      maxBytes: 5000,
      keep: KEPT_FILES,
      closeWithinMs: 20_000,
      warn: (line) => warnings.push(line),
    }),
  }));
  for (let index = 0; index < ENTRIES_EACH; index++) {
    for (const { name, audit } of audits)
      audit.record({ kind: 'end', who: 'claude', session: name, what: String(index) });
    await new Promise(setImmediate);
  }
  await Promise.all(audits.map(({ audit }) => audit.close()));
  expect(warnings).toEqual([]);
  expect(entriesIn(file).length).toBeGreaterThan(0);
  await expectEveryEntryOnce(file);
});
