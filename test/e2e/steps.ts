/** Common steps with the `compact` toolset. */

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

/** All kept events, read page by page. */
export async function pollAll(
  h: Harness,
  sessionId: string,
  args: Readonly<Record<string, unknown>> = {},
  from = 0,
): Promise<Json[]> {
  const events: Json[] = [];
  for (let cursor = from; ;) {
    const page = await check(h, { action: 'poll', sessionId, cursor, ...args });
    events.push(...page.events);
    if (page.truncated !== true || page.nextCursor === cursor) return events;
    cursor = page.nextCursor;
  }
}

export interface Turn {
  readonly sessionId: string;
  /** The cursor where its events begin. */
  readonly from: number;
  /** The session when the turn ended or asked for something. */
  readonly state: Json;
}

/** One more turn of `converse`, for tests that look only at this turn. */
export async function turn(h: Harness, prompt: string): Promise<Turn> {
  const { conversation } = h;
  const from = conversation === undefined ? 0 : await cursorOf(h, conversation);
  const sessionId = await h.converse(prompt);
  const state = await h.waitFor(sessionId, ({ status }) => status !== 'running', {
    what: 'the session is at rest or has a request',
  });
  return { sessionId, from: sessionId === conversation ? from : 0, state };
}

async function cursorOf(h: Harness, sessionId: string): Promise<number> {
  const { nextCursor } = await check(h, { action: 'poll', sessionId, pollOptions: { includeEvents: false } });
  return nextCursor;
}
