import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileTrail } from './file-trail.ts';

let directory: string;
let file: string;
let trail: FileTrail;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'trail-'));
  file = path.join(directory, 'a.txt');
  trail = new FileTrail();
});
afterEach(() => rm(directory, { recursive: true }));

/** Writes the file and reports it as the session's own edit. */
async function written(content: string, before?: string): Promise<void> {
  await writeFile(file, content);
  trail.written(file, before === undefined ? { kind: 'absent' } : { kind: 'text', text: before });
  await trail.whyForeign(file, '');
}

async function taken(message: string): Promise<void> {
  trail.messageTaken(message);
  await trail.whyForeign(file, message);
}

test('a file that only the session wrote is never foreign, however many writes', async () => {
  await taken('m1');
  await written('one\r\n');
  await written('two\n', 'one\n');
  await taken('m2');
  await written('three\n', 'two\n');
  expect(await trail.whyForeign(file, 'm1')).toBeUndefined();
  expect(await trail.whyForeign(file, 'm2')).toBeUndefined();
});

test('a file changed or removed by someone else is foreign', async () => {
  await taken('m1');
  await written('one\n');
  await writeFile(file, 'theirs\n');
  expect(await trail.whyForeign(file, 'm1')).toContain('changed since');
  await rm(file);
  expect(await trail.whyForeign(file, 'm1')).toContain('removed');
});

test('a change between two messages makes the file foreign to the earlier one only', async () => {
  await taken('m1');
  await written('one\n');
  await writeFile(file, 'theirs\n');
  await taken('m2');
  await written('two\n', 'theirs\n');
  expect(await trail.whyForeign(file, 'm2')).toBeUndefined();
  expect(await trail.whyForeign(file, 'm1')).toContain('changed since');
  expect(await trail.whyForeign(file, 'from before a restart')).toContain('changed since');
});

test.each([
  ['the edit reports what it replaced', { kind: 'text', text: 'theirs\n' }],
  ['the edit does not report what it replaced', { kind: 'unknown' }],
] as const)('a change by someone else within a turn is noticed: %s', async (_, before) => {
  await taken('m1');
  await written('one\n');
  await writeFile(file, 'two\n');
  trail.written(file, before);
  expect(await trail.whyForeign(file, 'm1')).toContain('changed since');
  await taken('m2');
  expect(await trail.whyForeign(file, 'm2')).toBeUndefined();
});

test('a file never seen is foreign; a restored one is the session’s again', async () => {
  expect(await trail.whyForeign(file, 'm1')).toContain('did not see');
  await written('one\n');
  await rm(file);
  await trail.putBack(file);
  expect(await trail.whyForeign(file, 'm1')).toBeUndefined();
});
