/** A hub keeps every event of a session, however few of them are in its memory. */

import { expect, test } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';

/** Every event from the first on, read as a program would: page by page. */
async function readAll(h: Harness, sessionId: string): Promise<Json[]> {
  const read: Json[] = [];
  for (let cursor = 1; ;) {
    const { events, nextCursor, cursorResetTo } = await h.ok('claude_code_check', {
      action: 'poll',
      sessionId,
      cursor,
      responseMode: 'full',
      maxEvents: 7,
    });
    expect(cursorResetTo).toBeUndefined();
    if (events.length === 0) return read;
    read.push(...events);
    expect(nextCursor).toBeGreaterThan(cursor);
    cursor = nextCursor;
  }
}

test('events that memory no longer has are read from the store, before and after a restart', async () => {
  const h = await startHarness({ hub: { env: { CLAUDE_CODE_MCP_EVENT_BUFFER_SIZE: '10' } } });
  const turns = 12;
  for (let turn = 1; turn <= turns; turn++) h.model.on(`turn ${String(turn)}.`).reply(text(`Answer ${String(turn)}.`));
  const { sessionId } = await h.ok('claude_code', { prompt: 'turn 1.', waitMs: 45_000 });
  for (let turn = 2; turn <= turns; turn++)
    await h.ok('claude_code_reply', { sessionId, prompt: `turn ${String(turn)}.`, waitMs: 45_000 });

  const all = await readAll(h, sessionId);
  expect(all.map(({ id }) => id)).toEqual(all.map((_, index) => index + 1));
  const said = JSON.stringify(all);
  for (let turn = 1; turn <= turns; turn++) expect(said).toContain(`Answer ${String(turn)}.`);

  await h.stopHub();
  await h.startHub();
  expect((await readAll(h, sessionId)).slice(0, all.length)).toEqual(all);
});
