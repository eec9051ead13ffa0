/** How much a calling model has to read and how often it has to call, for complete jobs with the real Claude Code. */

import path from 'node:path';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { counted } from '../../src/text/columns.ts';
import { textCaller } from '../../test/e2e/text-caller.ts';
import { openHarness, type Harness, type HarnessOptions } from '../../test/harness/open-harness.ts';
import { jobsIn, leftIn, prepareProject, QUESTION_JOB, TOOL_CALLS } from './caller-jobs.ts';
import { installPeers } from './peers.ts';
import { peerJobs } from './peer-jobs.ts';
import type { CallerServer, JobCost, Row } from './row.ts';

const LATER_TURNS = 5;

export interface CallerOptions {
  /** The directory of an earlier build. */
  readonly before?: string | undefined;
  readonly withPeers: boolean;
}

export interface CallerFigures {
  readonly rows: Row[];
  readonly bytes: Record<string, number>;
  /** Present if there is something to compare with. */
  readonly servers?: CallerServer[];
}

export async function callerFigures({ before, withPeers }: CallerOptions): Promise<CallerFigures> {
  const { rows, bytes, jobs } = await withHarness({}, ownRows);
  const program = before === undefined ? undefined : path.join(before, 'dist', 'main.mjs');
  const earlier = program && (await withHarness({ program }, (harness) => runJobs(harness)));
  if (earlier) {
    rows.push(...comparedRows(jobs.jobs, earlier.jobs, ''));
    const inRepository = await withHarness({ git: true }, (harness) => runJobs(harness));
    const earlierThere = await withHarness({ git: true, program }, (harness) => runJobs(harness));
    rows.push(...comparedRows(inRepository.jobs, earlierThere.jobs, ' in a git repository').slice(0, 1));
  }
  rows.push(await withHarness({ git: true }, laterTurnsRow));
  const others = withPeers ? await peerServers() : [];
  if (!earlier && others.length === 0) return { rows, bytes };
  const own = (name: string, { sessions: _, ...ran }: Ran): CallerServer => ({ name, ...ran });
  const servers = [
    own('claude-code-mcp', jobs),
    ...(earlier ? [own('claude-code-mcp, the build before', earlier)] : []),
    ...others,
  ];
  return { rows, bytes, servers };
}

async function withHarness<T>(options: HarnessOptions, measure: (harness: Harness) => Promise<T>): Promise<T> {
  const harness = await openHarness(options);
  try {
    await prepareProject(harness.project);
    return await measure(harness);
  } finally {
    await harness.close();
  }
}

async function peerServers(): Promise<CallerServer[]> {
  await using installed = await installPeers();
  for (const problem of installed.problems) console.error(`not measured: ${problem}`);
  return await peerJobs(installed.commands);
}

interface Ran extends Omit<CallerServer, 'name'> {
  /** The session of each job. */
  readonly sessions: readonly string[];
}

async function runJobs(harness: Harness): Promise<Ran> {
  const caller = textCaller(harness);
  const jobs: JobCost[] = [];
  const sessions: string[] = [];
  let decisions = 0;
  for (const { what, replies, decide } of jobsIn(harness.project)) {
    harness.model.on(`job: ${what}`).reply(...replies);
    const ran = await caller.run(`job: ${what}`, (request) => {
      decisions++;
      return decide(request);
    });
    const { calls } = ran;
    const last = ran.last as { sessionId: string; status: string };
    if (last.status !== 'idle') throw new Error(`${what} ended as ${last.status}`);
    jobs.push({ job: what, calls: calls.length, bytes: sum(calls.map((call) => call.bytes)), isDone: true });
    sessions.push(last.sessionId);
  }
  return { jobs, decisions, ...leftIn(harness.project), sessions };
}

/** Of this build, against fixed targets. */
async function ownRows(harness: Harness): Promise<{ rows: Row[]; bytes: Record<string, number>; jobs: Ran }> {
  const bytes: Record<string, number> = {};
  const { tools } = await harness.client.listTools();
  for (const { name, description, inputSchema } of tools)
    bytes[`tool ${name}`] = sizeOf({ name, description, inputSchema });
  const allTools = sum(Object.values(bytes));
  bytes['all tools'] = allTools;
  const rows: Row[] = [
    {
      what: 'tools/list, as a model reads it',
      target: 'at most 7,500 bytes',
      measured: `${count(allTools)} bytes`,
      reached: allTools <= 7_500,
      numbers: { bytes: allTools },
    },
  ];
  const jobs = await runJobs(harness);
  const targets = new Map(jobsIn(harness.project).map(({ what, most }) => [what, most]));
  for (const { job, calls, bytes: read } of jobs.jobs) {
    const most = targets.get(job) ?? { calls: 0, bytes: 0 };
    bytes[`${job} (${counted(calls, 'call')})`] = read;
    rows.push({
      what: `bytes and calls of a caller: ${job}`,
      target: `at most ${counted(most.calls, 'call')} and ${count(most.bytes)} bytes`,
      measured: `${counted(calls, 'call')}, ${count(read)} bytes`,
      reached: calls <= most.calls && read <= most.bytes,
      numbers: { calls, bytes: read },
    });
  }
  const longest = jobs.sessions[jobs.jobs.findIndex(({ job }) => job.startsWith(String(TOOL_CALLS)))] ?? '';
  rows.push(await eventsRow(harness, longest, bytes));
  return { rows, bytes, jobs };
}

/** Evidence must not be paid for with longer answers. */
function comparedRows(now: readonly JobCost[], before: readonly JobCost[], where: string): Row[] {
  const total = (jobs: readonly JobCost[], of: 'bytes' | 'calls'): number => sum(jobs.map((job) => job[of]));
  const [bytes, bytesBefore] = [total(now, 'bytes'), total(before, 'bytes')];
  const [calls, callsBefore] = [total(now, 'calls'), total(before, 'calls')];
  const question = (jobs: readonly JobCost[]): number => jobs.find(({ job }) => job === QUESTION_JOB)?.bytes ?? 0;
  const [asked, askedBefore] = [question(now), question(before)];
  return [
    {
      what: `bytes and calls of a caller: all five jobs${where}, against the build before`,
      target: 'no more',
      measured: `${counted(calls, 'call')}, ${count(bytes)} bytes (before ${counted(callsBefore, 'call')}, ${count(bytesBefore)} bytes)`,
      reached: bytes <= bytesBefore && calls <= callsBefore,
      numbers: { calls, bytes, callsBefore, bytesBefore },
    },
    {
      what: `bytes of a caller: ${QUESTION_JOB}${where}, against the build before`,
      target: 'a third less',
      measured: `${(asked / askedBefore).toFixed(2)} × (${count(asked)} bytes, before ${count(askedBefore)})`,
      reached: asked * 3 <= askedBefore * 2,
      numbers: { bytes: asked, bytesBefore: askedBefore },
    },
  ];
}

/** What the evidence adds to each answer of a session that goes on: every turn edits a file and runs the tests. */
async function laterTurnsRow(harness: Harness): Promise<Row> {
  const prompts = Array.from({ length: LATER_TURNS + 1 }, (_, turn) => `turn ${String(turn)}:`);
  for (const [turn, prompt] of prompts.entries())
    harness.model.on(prompt).reply(
      tool('Write', {
        file_path: path.join(harness.project, `part-${turn}.mjs`),
        content: `export default ${turn};\n`,
      }),
      tool('Bash', { command: 'node --test', description: 'test' }),
      text('Done and tested.'),
    );
  const options = { permissionMode: 'acceptEdits', allowedTools: ['Bash'], waitMs: 60_000 };
  const first = { prompt: prompts[0], cwd: harness.project, ...options };
  const { sessionId } = (await harness.ok('claude_code', first)) as { sessionId: string };
  const later: { answer: number; work: number }[] = [];
  for (const prompt of prompts.slice(1)) {
    const answer = (await harness.ok('claude_code_reply', { sessionId, prompt, waitMs: 60_000 })) as {
      result: { work: unknown };
    };
    later.push({ answer: sizeOf(answer), work: sizeOf(answer.result.work) });
  }
  const most = Math.max(...later.map(({ work }) => work));
  const answers = Math.max(...later.map(({ answer }) => answer));
  return {
    what: `the work report in turns 2 to ${LATER_TURNS + 1} of a session that edits and tests`,
    target: 'at most 2,200 bytes',
    measured: `${count(most)} of ${count(answers)} bytes at the most, ${count(later[0]?.work ?? 0)} in turn 2`,
    reached: most <= 2_200,
    numbers: { bytes: most, answerBytes: answers },
  };
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
