/** Hand-written transcripts, for content Claude Code does not write on demand. */

import { randomUUID } from 'node:crypto';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface WrittenTranscript {
  readonly sessionId: string;
  readonly file: string;
}

export async function writeTranscript(
  configDir: string,
  content: string | ((sessionId: string) => string),
  {
    project = '-work',
    lastModified = new Date(),
    sessionId = randomUUID(),
  }: { project?: string; lastModified?: Date; sessionId?: string } = {},
): Promise<WrittenTranscript> {
  const directory = path.join(configDir, 'projects', project);
  await mkdir(directory, { recursive: true });
  const file = path.join(directory, `${sessionId}.jsonl`);
  await writeFile(file, typeof content === 'string' ? content : content(sessionId));
  await utimes(file, lastModified, lastModified);
  return { sessionId, file };
}

export function promptLine(sessionId: string, prompt: string, cwd = '/work'): string {
  return `${JSON.stringify({
    parentUuid: null,
    isSidechain: false,
    type: 'user',
    message: { role: 'user', content: prompt },
    uuid: randomUUID(),
    timestamp: '2026-11-15T02:00:00.000Z',
    cwd,
    sessionId,
  })}\n`;
}

export function costLine(sessionId: string, totalCostUSD: unknown): string {
  return `${JSON.stringify({ type: 'cost-state', sessionId, totalCostUSD, modelUsage: {} })}\n`;
}
