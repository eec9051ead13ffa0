import type { Outcome } from '../requests/requests.ts';
import { expect, test } from 'vitest';
import { openRequest } from '../../../test/mcp/forms/open-request.ts';
import { Activity } from './activity.ts';

const ended = (isError: boolean, output = '') => ({ isError, output });

function startedActivity(): Activity {
  const activity = new Activity(() => 0);
  activity.begin();
  activity.messageGiven();
  return activity;
}

test('the activity line shows a pending request as waiting, and a cost only once it is known', () => {
  const activity = startedActivity();
  const request = openRequest('Bash', { command: 'npm test' }, { toolUseId: 'a' });
  activity.requestOpened(request);
  activity.toolUsed({ toolUseId: 'a', toolName: 'Bash', input: { command: 'npm test' } });
  expect(activity.line(undefined, true)).toBe('1 tool (1 Bash), waiting for permission: npm test');
  activity.requestSettled(
    request,
    { decision: { behavior: 'allow' }, source: 'caller' },
    { ran: { command: 'npm run lint' } },
  );
  expect(activity.line(undefined, true)).toBe('1 tool (1 Bash), now: npm run lint (input changed)');
  activity.toolEnded('a', ended(true, 'bad'));
  expect(activity.line(0.5, false)).toBe('1 tool (1 Bash), 1 failed, $0.50');
  expect(activity.line(0.001, false)).toBe('1 tool (1 Bash), 1 failed, <$0.01');
});

test('a call that was allowed without its process is made again and counts once; an answered question is done', () => {
  const activity = startedActivity();
  const call = { toolUseId: 'a', toolName: 'Bash', input: { command: 'npm test' } };
  const allowed: Outcome = { decision: { behavior: 'allow' }, source: 'caller', detached: true };
  const question = openRequest('AskUserQuestion', {}, { toolUseId: 'q' });
  activity.requestOpened(openRequest('Bash', call.input, { toolUseId: 'a' }));
  activity.requestOpened(question);
  activity.requestSettled({ ask: call }, allowed, {});
  activity.requestSettled(question, allowed, { answers: { 'Which?': 'this' } });
  expect(activity.line(undefined, false)).toBe('1 tool (1 AskUserQuestion)');
  activity.toolUsed({ ...call, toolUseId: 'b' });
  activity.toolEnded('b', ended(false, 'passed'));
  activity.endAll();
  expect(activity.toolUses.map(({ id, status }) => [id, status])).toEqual([
    ['q', 'completed'],
    ['b', 'completed'],
  ]);
  expect(activity.log.all).toHaveLength(1);
});

test('problems keeps the last five failures of the call, however many tools ran afterwards', () => {
  const activity = startedActivity();
  for (let index = 0; index < 7; index++) {
    activity.toolUsed({
      toolUseId: `bad${String(index)}`,
      toolName: 'Bash',
      input: { command: `bad ${String(index)}` },
    });
    activity.toolEnded(`bad${String(index)}`, ended(true, `${'x'.repeat(500)} end ${String(index)}`));
  }
  for (let index = 0; index < 300; index++) {
    activity.toolUsed({ toolUseId: `good${String(index)}`, toolName: 'Read', input: { file_path: 'a' } });
    activity.toolEnded(`good${String(index)}`, ended(false));
  }
  const { problems } = activity;
  expect(activity.log.ofTurn.map(({ failed }) => failed)).toEqual(Array.from({ length: 7 }, () => true));
  expect(problems.map(({ what }) => what)).toEqual(['bad 2', 'bad 3', 'bad 4', 'bad 5', 'bad 6']);
  for (const { tail } of problems) expect(tail.length).toBeLessThanOrEqual(200);
  expect(problems.at(-1)?.tail).toMatch(/^….* end 6$/);
  activity.begin();
  expect(activity).toMatchObject({ problems: [], log: { ofTurn: [] } });
  expect(activity.log.all).toHaveLength(7);
});

test('a problem names a long command with its end, which tells it from others', () => {
  const activity = startedActivity();
  const folder = `cd ${'/very/long/path'.repeat(12)} &&`;
  const commands = [`${folder} npm test`, `${folder} git commit -m "${'x'.repeat(200)}" -- src/a.ts`];
  for (const [index, command] of commands.entries()) {
    activity.toolUsed({ toolUseId: String(index), toolName: 'Bash', input: { command } });
    activity.toolEnded(String(index), ended(true, 'bad'));
  }
  const [short = '', long = ''] = activity.problems.map(({ what }) => what);
  expect(short).toBe(commands[0]);
  expect(long.length).toBeLessThanOrEqual(240);
  expect(long).toMatch(/^cd \/very.* … .*x" -- src\/a\.ts$/);
});

test('the plan file that Claude Code names is not in the log', () => {
  const activity = startedActivity();
  for (const file_path of ['/p/plans/mine.md', '/p/a.ts']) {
    activity.toolUsed({ toolUseId: file_path, toolName: 'Write', input: { file_path } });
    activity.toolEnded(file_path, ended(false));
  }
  activity.toolUsed({ toolUseId: 'x', toolName: 'ExitPlanMode', input: { planFilePath: '/p/plans/mine.md' } });
  expect(activity.log.ofTurn).toMatchObject([{ input: { file_path: '/p/a.ts' } }]);
});

test.each([
  ['a settings rule', undefined, 'settings'],
  ['a session rule', { by: 'disallowedTools', wholeTool: false }, 'disallowedTools'],
  ['a standing rule', { by: 'rule', wholeTool: false, rule: { id: '1', author: 'person' } }, 'rule'],
] as const)('a tool call refused by %s counts as never run, whichever report arrives first', (_what, rule, by) => {
  for (const errorFirst of [true, false]) {
    const activity = startedActivity();
    activity.toolUsed({ toolUseId: 'a', toolName: 'Bash', input: { command: 'curl x' } }, rule);
    if (errorFirst) activity.toolEnded('a', ended(true, 'denied'));
    activity.toolRefused('a', 'settings', 'denied');
    if (!errorFirst) activity.toolEnded('a', ended(true, 'denied'));
    expect(activity.problems).toEqual([{ tool: 'Bash', what: 'curl x', outcome: 'denied', by, tail: 'denied' }]);
    expect(activity.log.all).toEqual([]);
  }
});

test('a fully disallowed tool counts as denied, not failed', () => {
  const activity = startedActivity();
  activity.toolUsed(
    { toolUseId: 'a', toolName: 'WebFetch', input: { url: 'x' } },
    { by: 'disallowedTools', wholeTool: true },
  );
  activity.toolEnded('a', ended(true, 'No such tool available: WebFetch'));
  expect(activity.toolUses).toMatchObject([{ status: 'denied', deniedBy: 'disallowedTools' }]);
});

test('a packed activity reads the same and can be extended', () => {
  const viewOf = (activity: Activity): unknown => [
    activity.toolUses,
    activity.problems,
    activity.line(1, true),
    activity.log.all,
    activity.findToolUse('bad'),
  ];
  const finishedActivity = (): Activity => {
    const activity = startedActivity();
    for (const toolUseId of ['bad', 'good', 'open'])
      activity.toolUsed({ toolUseId, toolName: 'Bash', input: { command: toolUseId } });
    activity.toolEnded('bad', ended(true, 'Exit code 1'));
    activity.toolEnded('good', ended(false));
    return activity;
  };
  const [packed, plain] = [finishedActivity(), finishedActivity()];
  packed.pack();
  packed.pack();
  expect(viewOf(packed)).toEqual(viewOf(plain));
  for (const activity of [packed, plain]) {
    activity.toolEnded('open', ended(true, 'late'));
    activity.toolUsed({ toolUseId: 'next', toolName: 'Read', input: { file_path: 'a' } });
  }
  expect(packed.problems).toMatchObject([{ what: 'bad' }, { what: 'open' }]);
  expect(viewOf(packed)).toEqual(viewOf(plain));
});

test('a call that was allowed while no process could hear it did not run; the one made again did, as it was changed', () => {
  const activity = startedActivity();
  const allow = { decision: { behavior: 'allow' }, source: 'human', detached: true } as const;
  const asked = openRequest('Bash', { command: 'touch asked' }, { toolUseId: 'asked' });
  const question = openRequest('AskUserQuestion', { questions: [] }, { toolUseId: 'question' });
  activity.requestOpened(asked);
  activity.requestOpened(question);
  activity.requestSettled(asked, allow, { ran: { command: 'touch changed' } });
  activity.requestSettled(question, allow, { answers: { 'Which?': 'this' } });
  activity.repeated(
    { toolUseId: 'again', toolName: 'Bash', input: { command: 'touch asked' } },
    { command: 'touch changed' },
  );
  activity.toolEnded('again', ended(false));
  activity.endAll();
  expect(activity.line(undefined, false)).toBe('2 tools (1 AskUserQuestion, 1 Bash)');
  expect(activity.problems).toEqual([]);
  expect(activity.log.ofTurn).toMatchObject([{ input: { command: 'touch changed' }, failed: false }]);
  expect(activity.latestToolUses).toMatchObject([
    { id: 'question', status: 'completed', answer: 'this' },
    { id: 'again', status: 'completed', inputChanged: true },
  ]);
});
