/** Standing rules: how long many of them take to decide, what an answer by a rule costs, and how fast a replay is. */

import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { placeOf } from '../../src/engine/rules/standing/place.ts';
import { RuleSet } from '../../src/engine/rules/standing/rule-set.ts';
import { RuleBook } from '../../src/hub/rules/rule-book.ts';
import { replayRules } from '../../src/hub/rules/replay.ts';
import type { StandingRule } from '../../src/schema/standing-rules.ts';
import type { Change } from '../../src/schema/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { reply, text } from '../../src/scripted-model/reply.ts';
import { openHarness } from '../../test/harness/open-harness.ts';
import { BareSession } from './bare-sdk.ts';
import { interleaved, median, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const RULES = 10_000;
const REQUESTS = 100_000;
const CALLS = 200;
const COMMANDS = [
  'npm test',
  'git log --oneline -20',
  'make check && rm -rf x',
  'rg --pre ./evil foo',
  'npm run test-9999',
];

/** Calls that Claude makes in one message, so that little else is measured. */
const CALLS_PER_TURN = 25;

export async function ruleRows(rounds: number): Promise<Row[]> {
  return [...(await storedRuleRows()), await answeredRow(rounds)];
}

/**
 * Files written in turn: allowed by `allowedTools`, or asked about and answered by a rule; and the same with the bare SDK,
 * whose answer costs nothing, since the question alone takes Claude Code a few milliseconds.
 */
async function answeredRow(rounds: number): Promise<Row> {
  const harness = await openHarness({
    ...{ record: 'none', git: true, env: { CLAUDE_CODE_MCP_RULES: '~/rules.json' } },
    prepare: ({ home, project }) => {
      const rules = [{ decision: 'allow', tool: 'Write', match: 'made/**', directory: project }];
      writeFileSync(path.join(home, 'rules.json'), JSON.stringify({ rules }), { mode: 0o600 });
    },
  });
  const { project, model } = harness;
  const place = { cwd: project, env: harness.environment() };
  const bare = {
    allowed: new BareSession(place, { allowedTools: ['Write'] }),
    asked: new BareSession(place, { canUseTool: async (_tool, updatedInput) => ({ behavior: 'allow', updatedInput }) }),
  };
  try {
    let turns = 0;
    const turn = async (send: (prompt: string) => Promise<unknown>): Promise<number> => {
      const prompt = `write number ${turns++}.`;
      const files = Array.from({ length: CALLS_PER_TURN }, (_, n) => path.join(project, 'made', `${turns}-${n}`));
      const message = files.reduce((made, file_path) => made.tool('Write', { file_path, content: 'x' }), reply());
      model.on(prompt).reply(message, text('Done.'));
      return (await timed(() => send(prompt))) / CALLS_PER_TURN;
    };
    model.on('begin').always('Ready.');
    const begin = async (options: object): Promise<(prompt: string) => Promise<void>> => {
      const first = { prompt: 'begin', waitMs: 60_000, ...options };
      const { sessionId } = (await harness.ok('claude_code', first)) as { sessionId: string };
      return async (prompt) => {
        const next = { sessionId, prompt, waitMs: 60_000 };
        const { status } = (await harness.ok('claude_code_reply', next)) as { status: string };
        if (status !== 'idle') throw new Error(`The rule did not answer: ${status}`);
      };
    };
    const ours = { allowed: await begin({ allowedTools: ['Write'] }), ruled: await begin({}) };
    const contestants = {
      allowed: () => turn(ours.allowed),
      ruled: () => turn(ours.ruled),
      bareAllowed: () => turn((prompt) => bare.allowed.turn(prompt)),
      bareAsked: () => turn((prompt) => bare.asked.turn(prompt)),
    };
    await interleaved(1, contestants);
    const times = await interleaved(rounds * 5, contestants);
    // Of a difference between differences, medians measure the other load of the machine.
    const more = (some: readonly number[], others: readonly number[]): number =>
      Math.min(...some) - Math.min(...others);
    const ruleMs = more(times.ruled, times.allowed);
    const questionMs = more(times.bareAsked, times.bareAllowed);
    const ms = ruleMs - questionMs;
    return {
      what: 'a call that a rule answers, against one that allowedTools allows',
      target: 'at most 1 ms more than the question itself takes Claude Code',
      measured: `${round(ms, 2)} ms (${round(ruleMs, 2)} ms more than allowed, of which the question ${round(questionMs, 2)} ms)`,
      reached: ms <= 1,
      numbers: { ms: round(ms, 3), ruleMs: round(ruleMs, 3), questionMs: round(questionMs, 3) },
    };
  } finally {
    bare.allowed.close();
    bare.asked.close();
    await harness.close();
  }
}

async function storedRuleRows(): Promise<Row[]> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-bench-rules-'));
  const store = await openSqliteStore({ file: path.join(directory, 'hub.db'), warn: console.error });
  try {
    const place = placeOf('local', [directory]);
    const set = new RuleSet(manyRules(place.roots[0]?.real ?? directory));
    const decide = (n: number): void => {
      const command = COMMANDS[n % COMMANDS.length];
      set.decide({ toolName: 'Bash', input: { command, description: 'x' } }, place, 0);
    };
    for (let n = 0; n < CALLS; n++) decide(n);
    const decideMs: number[] = [];
    for (let n = 0; n < CALLS; n++) decideMs.push(await timed(async () => decide(n)));

    const rule = ruleOf('npm test', directory, 0);
    await store.write([{ type: 'rule.put', rule }]);
    const book = await RuleBook.open({ store, now: Date.now, warn: console.error });
    const answerMs: number[] = [];
    for (let n = 0; n < CALLS; n++)
      answerMs.push(
        await timed(async () => {
          const here = placeOf('local', [directory]);
          const verdict = book.inForce.decide({ toolName: 'Bash', input: { command: 'npm test' } }, here, 0);
          if (!verdict || !(await book.confirm(verdict.rule))) throw new Error('The rule decides nothing');
        }),
      );
    await book.close();

    const { hub, fence } = await store.acquireLease('bench', 60_000, {});
    await fill(store, { hub, fence }, directory);
    const replayMs: number[] = [];
    for (let n = 0; n < 3; n++) {
      const before = process.cpuUsage();
      const { matched } = await replayRules([ruleOf('npm test', directory, 0)], store, 0);
      if (matched !== REQUESTS / 2) throw new Error(`The replay matched ${matched}`);
      const { user, system } = process.cpuUsage(before);
      replayMs.push((user + system) / 1_000);
    }
    return [
      row(`${RULES} rules decide on a call`, 'under 1 ms', median(decideMs), 1),
      row('deciding on a call and confirming the rule in the store', 'at most 1 ms', median(answerMs), 1),
      row(`replay of ${REQUESTS} stored requests, processor time`, 'under 1 s', median(replayMs), 1_000),
    ];
  } finally {
    await store.close();
    await rm(directory, { recursive: true, force: true });
  }
}

function row(what: string, target: string, ms: number, mostMs: number): Row {
  return { what, target, measured: `${round(ms, 2)} ms`, reached: ms <= mostMs, numbers: { ms: round(ms, 3) } };
}

function ruleOf(match: string, directory: string, n: number): StandingRule {
  return {
    ...{ id: `r${n}`, decision: 'allow', tool: 'Bash', match, directory, createdBy: 'person', createdAt: 0 },
    ...{ enabled: true, uses: 0 },
  };
}

/** A third each: exact commands, files, and commands that are denied. */
function manyRules(directory: string): StandingRule[] {
  return Array.from({ length: RULES }, (_, n): StandingRule => {
    const rule = ruleOf(`npm run test-${n}`, directory, n);
    if (n % 3 === 1) return { ...rule, tool: 'Write', match: `src/part-${n}/**/*.ts` };
    return n % 3 === 2 ? { ...rule, decision: 'deny', match: `npm run release-${n} *` } : rule;
  });
}

async function fill(
  store: Awaited<ReturnType<typeof openSqliteStore>>,
  hub: { hub: string; fence: number },
  cwd: string,
): Promise<void> {
  const session = {
    ...{ id: 's', principal: 'local', cwd, options: {}, secretNames: [], workspace: { type: 'directory' } },
    ...{ totals: {}, state: { tag: 'idle' as const }, createdAt: 0, lastActiveAt: 0, runsOn: hub },
  };
  await store.write([{ type: 'session.put', session }], hub);
  for (let from = 0; from < REQUESTS; from += 1_000) {
    const changes = Array.from({ length: 1_000 }, (_, n): Change[] => {
      const id = `q${from + n}`;
      const command = n % 2 === 0 ? 'npm test' : 'npm run build && npm test';
      const ask = {
        ...{ requestId: id, toolUseId: id, toolName: 'Bash', input: { command, description: 'Run the tests' } },
        ...{ onceOnly: false, cwd, scope: { repository: cwd, directory: cwd }, said: 'I will run the tests now.' },
      };
      const request = { id, sessionId: 's', kind: 'permission' as const, ask, createdAt: from + n };
      const outcome = { decision: 'allow' as const, by: 'person', source: 'human', at: from + n + 1 };
      return [
        { type: 'request.open', request },
        { type: 'request.settle', sessionId: 's', requestId: id, outcome },
      ];
    });
    await store.write(changes.flat(), hub);
  }
}
