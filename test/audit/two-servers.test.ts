import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { openAudit } from '../../src/audit/audit-log.ts';
import { readAudit } from '../../src/audit/report.ts';
import { entriesIn, temporaryDirectory } from './audit-harness.ts';

const WRITERS = ['one', 'two', 'three'];
const ENTRIES_EACH = 400;

/** Node 20 cannot run TypeScript, and the writers have to be processes of their own. */
function compileSources(directory: string): string {
  const source = path.resolve(import.meta.dirname, '../../src');
  writeFileSync(path.join(directory, 'package.json'), '{"type":"module"}');
  for (const folder of ['audit', 'config', 'errors']) {
    mkdirSync(path.join(directory, folder));
    for (const file of readdirSync(path.join(source, folder)).filter((name) => name.endsWith('.ts'))) {
      const { outputText } = ts.transpileModule(readFileSync(path.join(source, folder, file), 'utf8'), {
        compilerOptions: {
          module: ts.ModuleKind.ESNext,
          target: ts.ScriptTarget.ES2023,
          rewriteRelativeImportExtensions: true,
        },
      });
      writeFileSync(path.join(directory, folder, file.replace(/\.ts$/, '.js')), outputText);
    }
  }
  const script = path.join(directory, 'writer.js');
  writeFileSync(
    script,
    `import { openAudit } from './audit/audit-log.js';
     const [path, name, maxBytes] = process.argv.slice(2);
     for (let index = 0; index < ${ENTRIES_EACH}; ) {
       const audit = openAudit({ path, maxBytes: Number(maxBytes), keep: 1000, closeWithinMs: 20_000, warn: (line) => { console.error(line); process.exitCode = 1; } });
       for (const end = index + 10; index < end; index++) {
         audit.record({ kind: 'tool_call', who: 'caller', session: name, what: String(index), details: { text: 'é'.repeat(index) } });
       }
       await audit.close();
     }`,
  );
  return script;
}

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

it('keeps every line of several processes whole while they rotate', async () => {
  const directory = temporaryDirectory();
  const script = compileSources(directory);
  const file = path.join(directory, 'log', 'audit.jsonl');
  const exits = await Promise.all(WRITERS.map((name) => once(fork(script, [file, name, '20000']), 'exit')));
  expect(exits.map(([code]) => code as number)).toEqual(WRITERS.map(() => 0));
  expect(readdirSync(path.dirname(file)).length).toBeGreaterThan(5);
  await expectEveryEntryOnce(file);
});

it('keeps every line of several logs in one process whole while they rotate', async () => {
  const file = path.join(temporaryDirectory(), 'audit.jsonl');
  const warnings: string[] = [];
  const audits = WRITERS.map((name) => ({
    name,
    audit: openAudit({
      path: file,
      maxBytes: 5000,
      keep: 1000,
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
