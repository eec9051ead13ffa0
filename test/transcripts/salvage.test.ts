import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createTranscripts } from '../../src/transcripts/disk-sessions.ts';
import { temporaryConfigDirectory } from './config-directory.ts';
import { promptLine, writeTranscript } from './written-transcript.ts';

const queued = (sessionId: string): string => `${JSON.stringify({ type: 'queue-operation', sessionId })}\n`;

test.each([
  ['a prompt', (id: string) => promptLine(id, 'hello'), true],
  [
    'a prompt after other lines, then a partial line',
    (id: string) => queued(id) + promptLine(id, 'hello') + '{"ty',
    true,
  ],
  ['a message that lists do not show', (id: string) => promptLine(id, ''), true],
  ['nothing', () => '', false],
  ['no message', queued, false],
  ['a truncated message', (id: string) => queued(id) + promptLine(id, 'hello').slice(0, 80), false],
  ['too many lines to search', (id: string) => queued(id).repeat(5_000), true],
])('a transcript with a message is kept, one without is removed: %s', async (_, content, resumed) => {
  const configDir = await temporaryConfigDirectory();
  const { sessionId, file } = await writeTranscript(configDir, content);
  const other = await writeTranscript(configDir, queued);
  expect(await createTranscripts({ configDir }).salvage(sessionId)).toBe(resumed);
  const left = [other.file, ...(resumed ? [file] : [])].map((kept) => path.basename(kept));
  expect((await readdir(path.dirname(file))).sort()).toEqual(left.sort());
});
