/** A Claude Code configuration directory for the running test, also used by the Agent SDK in this process. */

import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

export async function temporaryConfigDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(path.join(tmpdir(), 'transcripts-')));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  useConfigDirectory(directory);
  return directory;
}

export function useConfigDirectory(directory: string): void {
  const before = process.env['CLAUDE_CONFIG_DIR'];
  process.env['CLAUDE_CONFIG_DIR'] = directory;
  onTestFinished(() => {
    if (before === undefined) delete process.env['CLAUDE_CONFIG_DIR'];
    else process.env['CLAUDE_CONFIG_DIR'] = before;
  });
}
