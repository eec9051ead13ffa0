import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { removeOldAudit } from '../../src/audit/audit-file.ts';

const DAY_MS = 86_400_000;

test('rotated files are deleted when their last record is too old; the current file and unrelated files stay', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'audit-'));
  try {
    const now = Date.now();
    const ages = { 'audit.jsonl': 500, 'audit.jsonl.1': 10, 'audit.jsonl.2': 400, 'audit.jsonl.bak': 400, other: 400 };
    for (const [name, days] of Object.entries(ages)) {
      const file = path.join(directory, name);
      await writeFile(file, '{}\n');
      const then = new Date(now - days * DAY_MS);
      await utimes(file, then, then);
    }
    const log = path.join(directory, 'audit.jsonl');
    expect(await removeOldAudit(log, now - 365 * DAY_MS)).toEqual([`${log}.2`]);
    expect((await readdir(directory)).sort()).toEqual(['audit.jsonl', 'audit.jsonl.1', 'audit.jsonl.bak', 'other']);
    expect(await removeOldAudit('off', now)).toEqual([]);
    expect(await removeOldAudit(path.join(directory, 'nowhere', 'audit.jsonl'), now)).toEqual([]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
