/**
 * Claude Code appends `{"type":"cost-state","sessionId":…,"totalCostUSD":…}` when it leaves a session, not after each
 * turn and not when it is killed. A process that resumes or forks the session continues from the last such entry.
 */

import { lastOffsetIn, linesFromEnd } from './search-from-end.ts';

/** 0 if there is no such entry, as for Claude Code itself. */
export async function readLastCostUsd(transcript: string, sessionId: string): Promise<number> {
  for await (const line of linesFromEnd(transcript, '"type":"cost-state"')) {
    const cost = costIn(line, sessionId);
    if (cost !== undefined) return cost;
  }
  return 0;
}

/**
 * Whether Claude has answered since then: that process was killed, or is still running, and its cost is not recorded.
 */
export async function hasUnwrittenCost(transcript: string): Promise<boolean> {
  const answered = await lastOffsetIn(transcript, '"type":"assistant"');
  return answered > (await lastOffsetIn(transcript, '"type":"cost-state"'));
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
