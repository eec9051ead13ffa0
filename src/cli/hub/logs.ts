import { setTimeout as pause } from 'node:timers/promises';
import { printableLines } from '../terminal/printable.ts';
import { untilInterrupted } from '../terminal/terminal.ts';
import { hubLogFile, readLog } from './log-file.ts';
import type { HubCommandContext } from './run-hub.ts';

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
