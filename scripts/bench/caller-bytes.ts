/** How much a calling model has to read and how often it has to call, for complete jobs with the real Claude Code. */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { reply, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { textCaller, type Answer } from '../../test/e2e/text-caller.ts';
import type { Json } from '../../test/harness/json.ts';
import type { Harness } from '../../test/harness/open-harness.ts';
import type { Row } from './row.ts';

const TOOL_CALLS = 40;
const QUESTION = 'Which colour?';

interface Job {
  readonly what: string;
  readonly replies: readonly MessageReply[];
  readonly decide: (request: Json) => Answer;
  readonly most: { readonly calls: number; readonly bytes: number };
}

interface Ended {
  readonly sessionId: string;
  readonly status: string;
}

const allow = (): Answer => ({ decision: 'allow', answers: { [QUESTION]: 'red' } });
const touch = (name: string): MessageReply => tool('Bash', { command: `touch ${name}`, description: `make ${name}` });

function jobs({ project }: Harness): Job[] {
  const file = path.join(project, 'module.ts');
  const options = ['red', 'blue'].map((label) => ({ label, description: `paint it ${label}` }));
  const questions = [{ question: QUESTION, header: 'Colour', multiSelect: false, options }];
  return [
    { what: 'a short answer', replies: [text('Four.')], decide: allow, most: { calls: 1, bytes: 800 } },
    {
      what: 'one approval',
      replies: [touch('one.txt'), text('Made it.')],
      decide: allow,
      most: { calls: 2, bytes: 2_500 },
    },
    {
      what: 'one question and three permissions',
      replies: [
        tool('AskUserQuestion', { questions }),
        touch('two.txt'),
        touch('three.txt'),
        touch('four.txt'),
        text('Done.'),
      ],
      decide: allow,
      most: { calls: 5, bytes: 7_500 },
    },
    {
      what: `${TOOL_CALLS} tools`,
      replies: [
        ...Array.from({ length: TOOL_CALLS }, (_, index) => tool('Read', { file_path: file, offset: index + 1 })),
        text('All is well: the module reads as it should.'),
      ],
      decide: allow,
      most: { calls: 3, bytes: 2_000 },
    },
    {
      what: 'a refused command and a false claim',
      replies: [
        reply().text('I fetch it.').tool('Bash', { command: 'touch download', description: 'download' }),
        tool('Bash', { command: 'ls no-such-file', description: 'look' }),
        text('Downloaded and checked.'),
      ],
      decide: () => ({ decision: 'deny', message: 'no downloads' }),
      most: { calls: 2, bytes: 3_000 },
    },
  ];
}

export async function callerBytes(harness: Harness): Promise<{ rows: Row[]; bytes: Record<string, number> }> {
  const bytes: Record<string, number> = {};
  const { tools } = await harness.client.listTools();
  for (const { name, description, inputSchema } of tools)
    bytes[`tool ${name}`] = sizeOf({ name, description, inputSchema });
  const allTools = Object.values(bytes).reduce((sum, size) => sum + size, 0);
  bytes['all tools'] = allTools;
  const rows: Row[] = [
    {
      what: 'tools/list, as a model reads it',
      target: 'at most 7,500 bytes',
      measured: `${allTools.toLocaleString('en-US')} bytes`,
      reached: allTools <= 7_500,
      numbers: { bytes: allTools },
    },
  ];

  await writeFile(
    path.join(harness.project, 'module.ts'),
    'export const line = "some code that is read";\n'.repeat(60),
  );
  const caller = textCaller(harness);
  let longest = '';
  for (const { what, replies, decide, most } of jobs(harness)) {
    harness.model.on(`job: ${what}`).reply(...replies);
    const ran = await caller.run(`job: ${what}`, decide);
    const { calls } = ran;
    const last = ran.last as Ended;
    if (last.status !== 'idle') throw new Error(`${what} ended as ${last.status}`);
    const read = calls.reduce((sum, call) => sum + call.bytes, 0);
    bytes[`${what} (${calls.length} calls)`] = read;
    rows.push({
      what: `bytes and calls of a caller: ${what}`,
      target: `at most ${most.calls} calls and ${most.bytes.toLocaleString('en-US')} bytes`,
      measured: `${calls.length} calls, ${read.toLocaleString('en-US')} bytes`,
      reached: calls.length <= most.calls && read <= most.bytes,
      numbers: { calls: calls.length, bytes: read },
    });
    if (what.startsWith(String(TOOL_CALLS))) longest = last.sessionId;
  }
  return { bytes, rows: [...rows, await eventsRow(harness, longest, bytes)] };
}

async function eventsRow(harness: Harness, sessionId: string, bytes: Record<string, number>): Promise<Row> {
  const poll = { action: 'poll', sessionId, pollOptions: { maxBytes: 10_000_000 }, maxEvents: 10_000 };
  const eventBytes = async (responseMode: string): Promise<number> =>
    sizeOf(((await harness.ok('claude_code_check', { ...poll, responseMode })) as { events: unknown }).events);
  const minimal = await eventBytes('minimal');
  const full = await eventBytes('full');
  bytes[`events of ${TOOL_CALLS} tools, minimal`] = minimal;
  bytes[`events of ${TOOL_CALLS} tools, full`] = full;
  return {
    what: `events of ${TOOL_CALLS} tools, minimal against full`,
    target: 'at most 1/5',
    measured: `1/${(full / minimal).toFixed(1)}`,
    reached: minimal * 5 <= full,
    numbers: { minimal, full },
  };
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
