import { mkdir, open, rename, stat, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openOwnFile } from '../../platform/own-file.ts';
import { printableLines } from '../../text/invisible.ts';
import { untilInterrupted } from '../terminal/terminal.ts';
import type { HubCommandContext } from './run-hub.ts';

/** One older file is kept. */
const ROTATE_AT_BYTES = 5 * 1024 * 1024;
const TAIL_BYTES = 64 * 1024;

export function hubLogFile(stateDir: string): string {
  return path.join(stateDir, 'hub.log');
}

/** For a hub that is started in the background. */
export async function openHubLog(stateDir: string): Promise<FileHandle> {
  const file = hubLogFile(stateDir);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const size = (await stat(file).catch(() => undefined))?.size ?? 0;
  if (size > ROTATE_AT_BYTES) await rename(file, `${file}.1`);
  return openOwnFile(file, 'append');
}

/** The last lines from `from` on, and where they end. */
export async function readLog(file: string, from?: number): Promise<{ text: string; end: number }> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const start = from === undefined || from > size ? Math.max(0, size - TAIL_BYTES) : from;
    const buffer = Buffer.alloc(size - start);
    await handle.read(buffer, 0, buffer.length, start);
    return { text: buffer.toString('utf8'), end: size };
  } finally {
    await handle.close();
  }
}

const SHOWN_LINES = 200;
const LOOK_AGAIN_MS = 300;

export async function showLogs({ settings }: HubCommandContext, options: readonly string[]): Promise<number> {
  const file = hubLogFile(settings.stateDir);
  let read: Awaited<ReturnType<typeof readLog>>;
  try {
    read = await readLog(file);
  } catch {
    process.stderr.write(`There is no log yet: ${file} is written by "hub start" and by the installed service.\n`);
    return 1;
  }
  const lines = read.text.split('\n').slice(-SHOWN_LINES - 1);
  process.stdout.write(printableLines(lines.join('\n')));
  if (options.length === 0) return 0;
  return untilInterrupted(async (signal) => {
    for (let { end } = read; ;) {
      await pause(LOOK_AGAIN_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return 0;
      const more = await readLog(file, end);
      process.stdout.write(printableLines(more.text));
      end = more.end;
    }
  });
}
