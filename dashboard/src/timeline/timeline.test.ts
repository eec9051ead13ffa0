import { expect, test } from 'vitest';
import type { EventBody } from '../../../src/schema/events.ts';
import { Timeline } from './timeline.ts';

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
    { call: { input: { command: 'y' }, request: { outcome: { decision: 'allow', changed: true } } } },
  ]);
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
