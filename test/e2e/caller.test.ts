/** What a calling model needs: to decide in one call, and to trust the result. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { makeRepository } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { auditedEntries } from './forms-support.ts';
import { textCaller } from './text-caller.ts';
import { verifies } from './requirements.ts';
import { check, turn } from './steps.ts';

/** One server for all tests: the denied commands matter to one of them only. */
const SHARED = { settings: { permissions: { deny: ['Bash(rm *)'] } } };

const QUESTION = 'Which colour?';
const options = ['red', 'blue'].map((label) => ({ label, description: `paint it ${label}` }));
const ask = tool('AskUserQuestion', {
  questions: [{ question: QUESTION, header: 'Colour', multiSelect: false, options }],
});

verifies('caller.one-call-per-decision', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  h.model
    .on('paint it')
    .reply(
      ask,
      tool('Bash', { command: 'touch one.txt' }),
      tool('Bash', { command: 'touch two.txt' }),
      tool('Write', { file_path: join(h.project, 'three.txt'), content: '3' }),
      text('Painted.'),
    );
  const caller = textCaller(h);
  const { calls, last } = await caller.run('paint it', () => ({ decision: 'allow', answers: { [QUESTION]: 'red' } }));
  expect(h.dialect.view(last)).toMatchObject({ status: 'rest', answer: 'Painted.' });
  expect(calls.map(({ answer }) => h.dialect.view(answer).requests.map(({ type }) => type))).toEqual([
    ['user_question'],
    ['permission'],
    ['permission'],
    ['permission'],
    [],
  ]);
  // No answer repeats earlier events.
  for (const { answer } of calls) expect(answer).not.toHaveProperty('events');
});

const problemsOf = (h: Harness, state: Json): Json[] => (h.toolset === 'compact' ? state.result : state).work.problems;

verifies('caller.evidence', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  const cwd = join(h.project, 'repository');
  mkdirSync(cwd);
  await makeRepository(cwd, h.environment());
  h.model
    .on('commit it')
    .reply(
      tool('Bash', { command: 'git commit -qm done', description: 'commit' }),
      tool('Bash', { command: 'touch download', description: 'download' }),
      tool('Bash', { command: 'rm -r src', description: 'tidy up' }),
      tool('Bash', { command: 'curl http://127.0.0.1:9', description: 'fetch' }),
      text('Committed.'),
    );
  const sessionId = await h.begin('commit it', {
    cwd,
    allowedTools: ['Bash(git *)'],
    disallowedTools: ['Bash(curl *)'],
  });
  await h.deny(sessionId, { message: 'no downloads' });
  const done = await h.waitUntilRest(sessionId);
  expect(problemsOf(h, done)).toEqual([
    {
      tool: 'Bash',
      what: 'git commit -qm done',
      outcome: 'failed',
      tail: expect.stringContaining('nothing to commit'),
    },
    { tool: 'Bash', what: 'touch download', outcome: 'denied', by: 'caller', tail: 'no downloads' },
    { tool: 'Bash', what: 'rm -r src', outcome: 'denied', by: 'settings', tail: expect.any(String) },
    {
      tool: 'Bash',
      what: 'curl http://127.0.0.1:9',
      outcome: 'denied',
      by: 'disallowedTools',
      tail: expect.any(String),
    },
  ]);
  if (variant.toolset === 'compact') {
    expect(done.activity).toContain('1 failed, 3 denied');
    expect(done.result.permissionDenials).toEqual(
      expect.arrayContaining([expect.objectContaining({ toolName: 'Bash', what: 'touch download', by: 'caller' })]),
    );
  }
  const ended = await auditedEntries(h, ({ kind, session }) => kind === 'end' && session === sessionId);
  expect(ended).toMatchObject([{ details: { toolsFailed: 1, toolsDenied: 3 } }]);
});

verifies('caller.input-changed', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  h.model.on('make a file').reply(tool('Bash', { command: 'touch asked.txt' }), text('made'));
  const sessionId = await h.converse('make a file');
  const ran = 'until [ -f go.txt ]; do sleep 0.05; done; touch other.txt';
  await h.allow(sessionId, { updatedInput: { command: ran } });
  if (variant.toolset === 'compact')
    await eventually(async () => (await check(h, { action: 'poll', sessionId })).activity.includes('(input changed)'), {
      what: 'the activity says that the input was changed',
    });
  writeFileSync(join(h.project, 'go.txt'), '');
  await h.finish(sessionId);
  const matches = ({ kind, session, details }: Json): boolean =>
    kind === 'decision' && session === sessionId && details?.inputChanged;
  const [decision] = await auditedEntries(h, matches);
  expect(decision).toMatchObject({ details: { inputChanged: true, ran: expect.stringMatching(/chars, sha256/) } });
  if (variant.toolset === 'explicit') {
    const { toolUseEvents } = await h.ok('claude_get_status', { sessionId });
    expect(toolUseEvents).toMatchObject([{ input: ran, inputChanged: true }]);
    return;
  }
  const outcome = async (responseMode: string): Promise<Json> =>
    (await check(h, { action: 'poll', sessionId, responseMode })).events.find(
      ({ type, data }: Json) => type === 'permission_result' && data.inputChanged,
    ).data;
  expect(await outcome('minimal')).toMatchObject({ inputChanged: true, ran });
  expect(await outcome('full')).toMatchObject({ inputChanged: true, input: { command: ran } });
});

verifies('caller.decision-aids', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  const file = join(h.project, 'code.ts');
  writeFileSync(file, 'one\ntwo\n  three\nfour\nfive\nsix\n');
  h.model
    .on('change it')
    .reply(
      tool('Read', { file_path: file }),
      text('Three becomes 3.').tool('Edit', { file_path: file, old_string: '  three', new_string: '3' }),
      tool('Bash', { command: 'touch made.txt' }),
      text('changed'),
    );
  const sessionId = await h.converse('change it');
  const edit = await h.waitForRequest(sessionId);
  expect(edit).toMatchObject({
    cwd: h.project,
    said: 'Three becomes 3.',
    onExpiry: 'deny',
    edit: { line: 3, before: ['one', 'two'], after: ['four', 'five'] },
  });
  expect(edit.expiresInMs).toBeGreaterThan(0);
  expect(edit.expiresInMs).toBeLessThanOrEqual(300_000);
  await h.allow(sessionId);
  const bash = await h.waitForRequest(sessionId);
  expect(bash).toMatchObject({ toolName: 'Bash', alwaysAllows: 'Bash(touch made.txt) (this session only)' });
  // It was said about the edit, not about this call.
  expect(bash).not.toHaveProperty('said');
  await h.allow(sessionId);
  await h.finish(sessionId);
  expect(readFileSync(file, 'utf8')).toContain('two\n3\nfour');
});

verifies('caller.each-thing-once', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  const command = 'touch only-once.txt';
  // Long enough for Claude Code to cut it where it repeats it.
  const long = 'curl --silent --show-error --max-time 1 http://127.0.0.1:9/nothing-to-be-had-here';
  h.model
    .on('say it once')
    .reply(
      ask,
      text('I make the file.').tool('Bash', { command }),
      tool('Bash', { command: long }),
      tool('Bash', { command: 'ls not-there' }),
      text('Nothing more to say.'),
    );
  const caller = textCaller(h);
  const { calls } = await caller.run('say it once', () => ({ decision: 'allow', answers: { [QUESTION]: 'red' } }));
  const times = (call: number, words: string): number => JSON.stringify(calls[call]?.answer).split(words).length - 1;
  expect(times(0, QUESTION)).toBe(1);
  expect(times(1, command)).toBe(1);
  expect(times(1, 'only-once.txt')).toBe(1);
  expect(times(1, 'I make the file.')).toBe(1);
  expect(times(2, 'curl --silent')).toBe(1);
  expect(times(3, 'Nothing more to say.')).toBe(1);
  if (variant.toolset === 'explicit') {
    for (const event of calls[3]?.answer.toolUseEvents ?? []) expect(event).not.toHaveProperty('error');
    return;
  }
  const waiting = calls[1]?.answer;
  for (const name of ['activity', 'lastEventId', 'lastToolUseId']) expect(waiting).not.toHaveProperty(name);
  for (const name of ['suggestions', 'createdAt', 'expiresAt', 'questions'])
    expect(waiting.actions[0]).not.toHaveProperty(name);
  expect(waiting.actions[0]).toMatchObject({
    alwaysAllows: 'exactly this command (this session only)',
    summary: expect.any(String),
  });
});

verifies('caller.claude-is-told', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  const script = h.model.on('make both').reply(tool('Bash', { command: 'touch asked-for.txt' }), text('made'));
  const sessionId = await h.converse('make both');
  const words =
    variant.toolset === 'compact' ? { message: 'use that name from now on' } : { reason: 'use that name from now on' };
  await h.allow(sessionId, { updatedInput: { command: 'touch instead.txt' }, ...words });
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'made' });
  const told = h.model.requestsFor(script).at(-1)?.userTexts.join('\n');
  expect(told).toContain(
    'the caller changed its input before allowing it; it runs with {"command":"touch instead.txt"}',
  );
  expect(told).toContain('the caller allowed it and says: use that name from now on');
});

verifies('caller.denied-by-interrupt', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  h.model.on('never mind').reply(tool('Bash', { command: 'touch never.txt' }));
  const sessionId = await h.converse('never mind');
  await h.waitForRequest(sessionId);
  await h.ok(...h.dialect.interrupt(sessionId));
  const done = await h.waitUntilRest(sessionId);
  expect(problemsOf(h, done)).toMatchObject([{ outcome: 'denied', by: 'interrupt' }]);
});

verifies('check.tool-call', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  const lines = Array.from({ length: 2_000 }, (_, line) => `line ${String(line)}`).join('\n');
  writeFileSync(join(h.project, 'lines.txt'), lines);
  h.model.on('show it').reply(tool('Bash', { command: 'cat lines.txt' }), text('shown'));
  const { sessionId, from } = await turn(h, 'show it');
  const { events } = await check(h, { action: 'poll', sessionId, cursor: from });
  const { lastToolUseId: toolUseID } = await check(h, { action: 'poll', sessionId, responseMode: 'full' });
  const [result] = events.flatMap(({ data }: Json) => data.results ?? []);
  expect(result).toMatchObject({
    toolName: 'Bash',
    toolUseID,
    head: expect.stringContaining('line 0'),
    isError: false,
  });
  expect(result.tail).toContain('line 1999');

  let output = '';
  for (let pages = 0; pages < 20; pages++) {
    const page = await check(h, {
      action: 'poll',
      sessionId,
      pollOptions: { toolUseID, maxBytes: 6_000, resultOffset: output.length },
    });
    expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThanOrEqual(6_000);
    expect(page.toolCall).toMatchObject({ toolUseID, toolName: 'Bash', outcome: 'completed' });
    if (pages === 0) expect(page.toolCall.input).toEqual({ command: 'cat lines.txt' });
    output += String(page.toolCall.output);
    if (page.truncated !== true) break;
  }
  expect(output).toBe(lines);
  await h.fails('claude_code_check', { action: 'poll', sessionId, toolUseID: 'toolu_none' }, 'INVALID_ARGUMENT');

  const full = JSON.stringify(await check(h, { action: 'poll', sessionId, cursor: from, responseMode: 'full' }));
  expect(full.split('line 1234').length - 1).toBe(1);
  expect(full).toContain(`"toolName":"Bash","toolUseID":"${String(toolUseID)}"`.split(',')[0]);
});

verifies('status.since-message', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(SHARED);
  h.model.on('first').reply(text('one').tool('Bash', { command: 'echo 1' }), text('two'));
  h.model.on('second').reply(text('three').tool('Bash', { command: 'echo 2' }), text('four'));
  const sessionId = await h.converse('first');
  await h.finish(sessionId);
  const last = await h.ok('claude_send_message', { sessionId, message: 'second', waitMs: 40_000 });
  expect(last).toMatchObject({
    status: 'completed',
    result: 'four',
    recentOutput: ['three'],
    toolUseEvents: [{ input: 'echo 2' }],
  });
  const all = await h.ok('claude_get_status', { sessionId, turn: 'all' });
  expect(all.recentOutput.slice(-4)).toEqual(['one', 'two', 'three', 'four']);
  expect(all.toolUseEvents.slice(-2)).toMatchObject([{ input: 'echo 1' }, { input: 'echo 2' }]);
});
