/** Steps with the `compact` toolset that these tests take again and again. */

import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';

export async function start(h: Harness, args: Readonly<Record<string, unknown>>): Promise<string> {
  const { sessionId } = await h.ok('claude_code', args);
  return sessionId;
}

export function check(h: Harness, args: Readonly<Record<string, unknown>>): Promise<Json> {
  return h.ok('claude_code_check', args);
}

export function respond(
  h: Harness,
  sessionId: string,
  requestId: string,
  answer: Readonly<Record<string, unknown>>,
): Promise<Json> {
  return check(h, { action: 'respond_permission', sessionId, requestId, ...answer });
}

/** All events that are kept, page by page. */
export async function pollAll(
  h: Harness,
  sessionId: string,
  args: Readonly<Record<string, unknown>> = {},
): Promise<Json[]> {
  const events: Json[] = [];
  for (let cursor = 0; ;) {
    const page = await check(h, { action: 'poll', sessionId, cursor, ...args });
    events.push(...page.events);
    if (page.truncated !== true || page.nextCursor === cursor) return events;
    cursor = page.nextCursor;
  }
}
