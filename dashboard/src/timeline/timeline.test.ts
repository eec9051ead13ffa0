import { expect, test } from 'vitest';
import type { EventBody } from '../../../src/schema/events.ts';
import { againText, progressOf, Timeline, type Progress, type ToolCall } from './timeline.ts';

function timelineOf(...bodies: EventBody[]): Timeline {
  const timeline = new Timeline();
  for (const [index, data] of bodies.entries()) {
    timeline.add({ id: index + 1, type: 'progress', timestamp: new Date(index * 1000).toISOString(), data });
  }
  return timeline;
}

const says = (text: string, parentToolUseId?: string): EventBody => ({
  kind: 'message',
  role: 'assistant',
  blocks: [{ kind: 'text', text }],
  ...(parentToolUseId !== undefined && { parentToolUseId }),
});
const calls = (toolUseId: string, toolName: string, parentToolUseId?: string): EventBody => ({
  kind: 'message',
  role: 'assistant',
  blocks: [{ kind: 'tool_call', toolUseId, toolName, input: { command: 'x' } }],
  ...(parentToolUseId !== undefined && { parentToolUseId }),
});
const returns = (toolUseId: string, output: string): EventBody => ({
  kind: 'message',
  role: 'user',
  blocks: [{ kind: 'tool_result', toolUseId, output, isError: false }],
});

test('a result is attached to its call', () => {
  const { items } = timelineOf(calls('t', 'Bash'), returns('t', 'done'));
  expect(items).toMatchObject([{ kind: 'tool', call: { name: 'Bash', output: 'done', startedAt: 0, endedAt: 1000 } }]);
});

test('a sub-agent’s calls are nested below its own, and can be collapsed', () => {
  const timeline = timelineOf(
    calls('agent', 'Agent'),
    says('main'),
    calls('inner', 'Read', 'agent'),
    says('found', 'agent'),
  );
  const rows = timeline.rows(() => false).map(({ item, depth }) => [item.kind, depth]);
  expect(rows).toEqual([
    ['tool', 0],
    ['tool', 1],
    ['text', 1],
    ['text', 0],
  ]);
  expect(timeline.rows(() => true)).toHaveLength(2);
});

test('streaming text grows in place until the complete message replaces it', () => {
  const partial = (text: string): EventBody => ({ kind: 'partial', text });
  expect(timelineOf(partial('Hel'), partial('lo')).items).toMatchObject([{ text: 'Hello', unfinished: true }]);
  expect(timelineOf(partial('Hel'), says('Hello!')).items).toMatchObject([{ text: 'Hello!', unfinished: false }]);
});

test('a decision is shown on its call, with the input that ran instead', () => {
  const { items } = timelineOf(calls('t', 'Bash'), {
    kind: 'permission_result',
    requestId: 'r',
    toolName: 'Bash',
    toolUseId: 't',
    decision: 'allow',
    source: 'human',
    input: { command: 'y' },
  });
  expect(items).toMatchObject([
    {
      call: {
        input: { command: 'x' },
        ran: { command: 'y' },
        request: { outcome: { decision: 'allow', changed: true } },
      },
    },
  ]);
});

test('what was changed when no process could hear it is shown on the call that ran with it, with the decision', () => {
  const changed = { command: 'y' };
  const { items } = timelineOf(
    ...[calls('t', 'Bash'), asks('r', 't'), allows('r', 't', { ...away, input: changed })],
    ...[calls('u', 'Bash'), returns('u', 'done')],
    { kind: 'repeated', requestId: 'r', toolName: 'Bash', toolUseId: 'u', input: changed },
  );
  const [asked, ran] = items.flatMap((item) => (item.kind === 'tool' ? [item.call] : []));
  expect(asked).not.toHaveProperty('ran');
  expect(ran).toMatchObject({ ran: changed, request: { id: 'r', outcome: { decision: 'allow', changed: true } } });
});

test('a call takes the time that it ran, without the time that somebody took to allow it', () => {
  const { items } = timelineOf(calls('t', 'Bash'), asks('r', 't'), allows('r', 't'), returns('t', 'done'));
  expect(items).toMatchObject([{ call: { startedAt: 2000, endedAt: 3000 } }]);
});

test('an init event, which Claude Code repeats every turn, is shown only when it changes', () => {
  const init: EventBody = {
    kind: 'init',
    tools: [],
    model: 'm',
    permissionMode: 'default',
    version: '1',
    cwd: '/',
  };
  expect(timelineOf(init, init, { ...init, permissionMode: 'plan' }).items).toHaveLength(2);
});

type Settled = Extract<EventBody, { kind: 'permission_result' }>;
const asks = (requestId: string, toolUseId: string): EventBody => ({
  kind: 'permission_request',
  request: {
    id: requestId,
    kind: 'permission',
    ask: { requestId, toolUseId, toolName: 'Bash', input: { command: 'x' }, onceOnly: false },
    createdAt: 0,
  },
});
const allows = (requestId: string, toolUseId: string, more: Partial<Settled> = {}): EventBody => ({
  kind: 'permission_result',
  ...{ requestId, toolUseId, toolName: 'Bash', decision: 'allow', source: 'human' },
  ...more,
});
const away = { detached: true } as const;
const ends: EventBody = {
  kind: 'result',
  subtype: 'success',
  result: {
    ...{ text: '', isError: false, interrupted: false, numTurns: 1, cumulativeCostUsd: 0, durationMs: 1 },
    ...{ durationApiMs: 1, usage: {}, modelUsage: {}, permissionDenials: [] },
  },
};

function progressIn({ items }: Timeline, session: 'working' | 'resting' = 'working'): Progress[] {
  const callsIn = (of: typeof items): ToolCall[] =>
    of.flatMap((item) => (item.kind === 'tool' ? [item.call, ...callsIn(item.call.steps)] : []));
  return callsIn(items).map((call) => progressOf(call, session));
}

test.each<[what: string, events: EventBody[], expected: Progress[]]>([
  ['runs until it has a result', [calls('t', 'Bash')], ['running']],
  ['waits for an answer', [calls('t', 'Bash'), asks('r', 't')], ['waiting']],
  [
    'that Claude Code refused by itself is denied',
    [
      calls('t', 'Bash'),
      { kind: 'tool_refused', toolUseId: 't', by: 'rule', message: 'No.', rule: { id: 'r_1', author: 'a' } },
      returns('t', 'No.'),
    ],
    ['denied'],
  ],
  ['does not run on after its turn', [calls('t', 'Bash'), ends], ['unfinished']],
  [
    'that was allowed and then cut off may have run',
    [calls('t', 'Bash'), asks('r', 't'), allows('r', 't'), ends],
    ['unfinished'],
  ],
  [
    'that was allowed too late does not run yet',
    [calls('t', 'Bash'), asks('r', 't'), allows('r', 't', away)],
    ['allowed'],
  ],
  [
    'is not carried out if it was allowed too late',
    [calls('t', 'Bash'), asks('r', 't'), allows('r', 't', away), ends],
    ['lapsed'],
  ],
  [
    'is made again by the next process',
    [calls('t', 'Bash'), asks('r', 't'), allows('r', 't', away), calls('u', 'Bash'), returns('u', 'done'), ends],
    ['repeated', 'done'],
  ],
  [
    'is made again when Claude is asked to later',
    [calls('t', 'Bash'), asks('r', 't'), allows('r', 't', away), ends, calls('u', 'Bash'), returns('u', 'done'), ends],
    ['repeated', 'done'],
  ],
  [
    'is over when its question was answered in words',
    [calls('t', 'Bash'), asks('r', 't'), allows('r', 't', { ...away, answers: { 'Which?': 'one' } }), ends],
    ['done'],
  ],
  [
    'of a background agent runs on',
    [calls('a', 'Agent'), returns('a', 'started'), calls('t', 'Bash', 'a'), ends],
    ['done', 'running'],
  ],
])('a call %s', (_what, events, expected) => {
  expect(progressIn(timelineOf(...events))).toEqual(expected);
});

test('no call is shown as running in a session at rest', () => {
  expect(progressIn(timelineOf(calls('t', 'Bash')), 'resting')).toEqual(['unfinished']);
});

test('what the hub and Claude Code put into the conversation is not shown as a prompt', () => {
  const told: EventBody = { kind: 'prompt', messageId: 'm', text: 'Decided: yes.\n\nGo on.', preamble: 15 };
  const added = (text: string): EventBody => ({ kind: 'message', role: 'user', blocks: [{ kind: 'text', text }] });
  const [item] = timelineOf(calls('t', 'Bash')).items;
  const again: EventBody = { kind: 'prompt', messageId: 'n', text: item?.kind === 'tool' ? againText(item.call) : '' };
  expect(timelineOf(told, added('[Request interrupted by user]'), again).items).toMatchObject([
    { kind: 'aside', text: 'Decided: yes.' },
    { kind: 'prompt', text: 'Go on.' },
    { kind: 'aside', title: 'Interrupted' },
    { kind: 'aside', title: 'Asked again for a call' },
  ]);
});
