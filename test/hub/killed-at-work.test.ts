/** What a hub still knows about the work of a session after it was restarted or killed, with the real Claude Code. */

import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';

const REPOSITORY = { git: true, settings: { permissions: { allow: ['Bash', 'Write'] } }, hub: {} };

const write = (h: Harness, name: string): ReturnType<typeof tool> =>
  tool('Write', { file_path: join(h.project, name), content: `${name}\n` });

const filesIn = ({ files }: Json): string[] => files.map(({ path }: Json) => path).sort();

it('after a restart and a kill a session is compared with its own beginning, a turn with its own, and the calls that ran are known', async () => {
  const h = await startHarness(REPOSITORY);
  const held = gate(text('never'));
  h.model.on('first').reply(write(h, 'a.txt'), text('done'));
  h.model.on('second').reply(write(h, 'b.txt'), text('done'));
  h.model.on('third').reply(write(h, 'c.txt'), held);
  h.model.on('fourth').reply(write(h, 'd.txt'), text('done'));
  const say = (prompt: string): Promise<Json> => h.ok('claude_code_reply', { sessionId, prompt, waitMs: 45_000 });
  const diff = async (): Promise<string[]> =>
    filesIn((await h.ok('claude_code_session', { action: 'diff', sessionId })).diff);

  const { sessionId, result } = await h.ok('claude_code', { prompt: 'first', waitMs: 45_000 });
  expect(filesIn(result.work)).toEqual(['a.txt']);
  await h.stopHub();
  await h.startHub();
  expect(await diff()).toEqual(['a.txt']);
  expect(filesIn((await say('second')).result.work)).toEqual(['b.txt']);

  const { nextCursor } = await h.ok('claude_code_reply', { sessionId, prompt: 'third' });
  await held.arrived;
  // What Claude Code has told the model it may not have told the hub yet.
  await vi.waitFor(
    async () => {
      const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, cursor: nextCursor });
      expect(JSON.stringify(events)).toContain('"toolName":"Write"');
    },
    { timeout: 30_000 },
  );
  await h.killHubAndKeeper();
  await h.startHub();
  const cutOff = await h.ok('claude_code_check', { action: 'wait', sessionId });
  expect(cutOff.status).toBe('error');
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, cursor: nextCursor });
  const told = events.flatMap(({ data }: Json) => [...(data.tools ?? []), ...(data.results ?? [])]);
  expect(told).toMatchObject([
    { name: 'Write', summary: expect.stringContaining('c.txt') },
    { toolName: 'Write', isError: false },
  ]);
  expect(filesIn(cutOff.result.work)).toEqual(['c.txt']);
  expect(await diff()).toEqual(['a.txt', 'b.txt', 'c.txt']);

  expect(filesIn((await say('fourth')).result.work)).toEqual(['d.txt']);
  await h.stopHub('SIGKILL');
  await h.startHub();
  expect(await diff()).toEqual(['a.txt', 'b.txt', 'c.txt', 'd.txt']);
});
