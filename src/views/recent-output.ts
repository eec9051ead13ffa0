import type { SessionReading } from '../engine/conversation/reading.ts';
import { assistantText } from '../engine/conversation/speech.ts';
import { cutAt } from '../engine/conversation/tool-summary.ts';

const MAX_LINE_LENGTH = 2_000;
/** A client that truncates an answer must not lose the rest of it to old output. */
const MAX_CHARS = 24_000;

/** The last lines of what Claude said and is saying, oldest first, starting at the event `since`. */
export function recentOutput(
  reading: Pick<SessionReading, 'log' | 'unfinishedText'>,
  maxLines: number,
  since: number,
): string[] {
  const lines: string[] = [];
  let chars = 0;
  for (const line of linesNewestFirst(reading, since)) {
    const shown = line.length > MAX_LINE_LENGTH ? `${cutAt(line, MAX_LINE_LENGTH)}…` : line;
    chars += shown.length;
    if (lines.length >= maxLines || chars > MAX_CHARS) break;
    lines.push(shown);
  }
  return lines.reverse();
}

function* linesNewestFirst(
  { log, unfinishedText }: Pick<SessionReading, 'log' | 'unfinishedText'>,
  since: number,
): Generator<string> {
  if (unfinishedText.trim() !== '') yield* unfinishedText.trimEnd().split('\n').reverse();
  for (const { id, body } of log.newestFirst()) {
    if (id < since) return;
    const text = assistantText(body);
    if (text !== undefined) yield* text.trimEnd().split('\n').reverse();
  }
}
