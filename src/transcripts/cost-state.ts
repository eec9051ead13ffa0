/**
 * Claude Code appends `{"type":"cost-state","sessionId":…,"totalCostUSD":…}` when it leaves a session, not after each
 * turn and not when it is killed. A process that resumes or forks the session continues from the last such entry.
 */

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { linesFromEnd } from './search-from-end.ts';

/** 0 if there is no such entry, as for Claude Code itself. */
export async function readLastCostUsd(transcript: string, sessionId: string): Promise<number> {
  for await (const line of linesFromEnd(transcript, '"type":"cost-state"')) {
    const cost = costIn(line, sessionId);
    if (cost !== undefined) return cost;
  }
  return 0;
}

/**
 * Whether some answers are in no such entry: their process was killed, or is still running. An entry covers what its own
 * process did, from `startTime` on, and what was recorded before.
 */
export async function hasUnwrittenCost(transcript: string): Promise<boolean> {
  const lines = createInterface({ input: createReadStream(transcript), crlfDelay: Infinity });
  let unwrittenSince: number | undefined;
  for await (const line of lines) {
    if (!/"type":"(?:assistant|cost-state)"/.test(line)) continue;
    const entry = (parse(line) ?? {}) as Record<string, unknown>;
    if (entry['type'] === 'cost-state') {
      if (unwrittenSince !== undefined && unwrittenSince < Number(entry['startTime'] ?? 0)) return true;
      unwrittenSince = undefined;
    } else if (entry['type'] === 'assistant' && entry['forkedFrom'] === undefined) {
      // An answer that a fork took over from its parent is in the parent's total.
      unwrittenSince ??= Date.parse(String(entry['timestamp']));
    }
  }
  return unwrittenSince !== undefined;
}

function costIn(line: string, sessionId: string): number | undefined {
  const entry = parse(line);
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { type, sessionId: owner, totalCostUSD: cost } = entry as Record<string, unknown>;
  if (type !== 'cost-state' || owner !== sessionId) return undefined;
  return typeof cost === 'number' && Number.isFinite(cost) && cost >= 0 ? cost : undefined;
}

function parse(line: string): unknown {
  try {
    // A machine crash can leave zeros before the next entry; Claude Code skips them too.
    return JSON.parse(line.slice(line.search(/[^\0]/)));
  } catch {
    return undefined;
  }
}
