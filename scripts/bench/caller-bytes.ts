/** What the calling model has to read, in bytes of JSON: per tool and per scenario, with the real Claude Code. */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text, tool } from '../../src/scripted-model/reply.ts';
import type { Harness } from '../../test/harness/open-harness.ts';
import type { Row } from './row.ts';

const TOOL_CALLS = 40;
const WAIT_MS = 120_000;

export async function callerBytes(harness: Harness): Promise<{ rows: Row[]; bytes: Record<string, number> }> {
  const bytes: Record<string, number> = {};
  const { tools } = await harness.client.listTools();
  for (const { name, description, inputSchema } of tools)
    bytes[`tool ${name}`] = sizeOf({ name, description, inputSchema });
  const allTools = Object.values(bytes).reduce((sum, size) => sum + size, 0);
  bytes['all tools'] = allTools;

  const watched = await watchedTask(harness);
  bytes[`a task of ${TOOL_CALLS} tool calls, watched with wait (${watched.calls} calls)`] = watched.bytes;
  const poll = {
    action: 'poll',
    sessionId: watched.sessionId,
    pollOptions: { maxBytes: 10_000_000 },
    maxEvents: 10_000,
  };
  const minimal = await eventBytes(harness, { ...poll, responseMode: 'minimal' });
  const full = await eventBytes(harness, { ...poll, responseMode: 'full' });
  bytes['its events, minimal'] = minimal;
  bytes['its events, full'] = full;
  return {
    bytes,
    rows: [
      {
        what: 'tools/list, as a model reads it',
        target: 'at most 9,000 bytes',
        measured: `${allTools.toLocaleString('en-US')} bytes`,
        reached: allTools <= 9_000,
        numbers: { bytes: allTools },
      },
      {
        what: `a task of ${TOOL_CALLS} tool calls, watched with wait`,
        target: 'at most 3 calls and 2,000 bytes',
        measured: `${watched.calls} calls, ${watched.bytes.toLocaleString('en-US')} bytes`,
        reached: watched.calls <= 3 && watched.bytes <= 2_000,
        numbers: { calls: watched.calls, bytes: watched.bytes },
      },
      {
        what: 'its events, minimal against full',
        target: 'at most 1/8',
        measured: `1/${(full / minimal).toFixed(1)}`,
        reached: minimal * 8 <= full,
        numbers: { minimal, full },
      },
    ],
  };
}

async function watchedTask(harness: Harness): Promise<{ sessionId: string; calls: number; bytes: number }> {
  const file = path.join(harness.project, 'module.ts');
  await writeFile(file, 'export const line = "some code that is read";\n'.repeat(60));
  const prompt = 'look at everything';
  harness.model
    .on(prompt)
    .reply(
      ...Array.from({ length: TOOL_CALLS }, (_, index) => tool('Read', { file_path: file, offset: index + 1 })),
      text('All is well: the module reads as it should.'),
    );
  let calls = 0;
  let bytes = 0;
  const call = async (name: string, args: Record<string, unknown>): Promise<{ sessionId: string; status: string }> => {
    const answer = await harness.call(name, args, { timeout: WAIT_MS });
    calls++;
    bytes += Buffer.byteLength(answer.text);
    return answer.data as { sessionId: string; status: string };
  };
  let { sessionId, status } = await call('claude_code', { prompt });
  while (status === 'running')
    ({ sessionId, status } = await call('claude_code_check', { action: 'wait', sessionId, waitMs: WAIT_MS }));
  if (status !== 'idle') throw new Error(`The task ended as ${status}`);
  return { sessionId, calls, bytes };
}

async function eventBytes(harness: Harness, args: Record<string, unknown>): Promise<number> {
  const answer = (await harness.ok('claude_code_check', args)) as { events: unknown };
  return sizeOf(answer.events);
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
