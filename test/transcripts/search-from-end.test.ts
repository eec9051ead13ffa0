import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { fileIncludes, linesFromEnd } from '../../src/transcripts/disk-sessions.ts';
import { temporaryConfigDirectory } from './config-directory.ts';

const WINDOW_BYTES = 256 * 1024;

async function written(content: string): Promise<string> {
  const file = path.join(await temporaryConfigDirectory(), 'file');
  await writeFile(file, content);
  return file;
}

async function all(lines: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines) found.push(line);
  return found;
}

test('finds the lines that contain a text, last one first', async () => {
  const file = await written('mark 1\nother\nsome mark 2\n\nmark 3');
  expect(await all(linesFromEnd(file, 'mark'))).toEqual(['mark 3', 'some mark 2', 'mark 1']);
});

test.each([-8, -4, -1, 0, 1, 4, 8])('finds a text %i bytes from a window boundary exactly once', async (shift) => {
  const after = `\n${'z'.repeat(100)}\n`.repeat(3000).slice(0, WINDOW_BYTES + shift - 'needle\n'.length);
  const file = await written(`${'filler\n'.repeat(50_000)}needle\n${after}`);
  expect(await all(linesFromEnd(file, 'needle'))).toEqual(['needle']);
  expect(await fileIncludes(file, 'needle')).toBe(true);
});

test('skips an overlong line and continues', async () => {
  const long = `${'x'.repeat(200_000)}mark${'x'.repeat(200_000)}`;
  const file = await written(`mark 1\n${long}\n${'y'.repeat(70_000)}mark\nmark${'y'.repeat(70_000)}\n`);
  expect(await all(linesFromEnd(file, 'mark'))).toEqual(['mark 1']);
});

test.each(['', '\n', 'other\n'])('finds nothing in %j', async (content) => {
  const file = await written(content);
  expect(await all(linesFromEnd(file, 'mark'))).toEqual([]);
  expect(await fileIncludes(file, 'mark')).toBe(false);
});
