/** Every event is plain data, and nothing in Claude Code's messages is lost. */

import { readFileSync } from 'node:fs';
import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeRetry, bodyOf, translate } from '../../src/driver/translate.ts';
import { originalMessage, withoutTextsOf } from '../../src/driver/original.ts';
import { EventBody, Original } from '../../src/schema/events.ts';

/** One message of each shape observed from Claude Code 2.1.325. */
const RECORDED = readFileSync(new URL('recorded-messages.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as SDKMessage);

const roundTrip = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function shapeOf(message: SDKMessage): string {
  const { content } = ('message' in message ? message.message : {}) as { content?: unknown };
  const blocks = Array.isArray(content) ? content.map((block: { type: string }) => block.type).join('+') : '';
  return [message.type, 'subtype' in message ? message.subtype : '', blocks].filter((word) => word !== '').join(' ');
}

const cases = RECORDED.map((message) => [shapeOf(message), message] as const);
const SILENT: readonly string[] = ['stream_event', 'system thinking_tokens'];

test.each(cases)('%s becomes plain data, and the original can be recovered', (shape, message) => {
  const { event, signals } = translate(structuredClone(message));
  if (!event) return expect(signals.length > 0 || SILENT.includes(shape)).toBe(true);
  const read = roundTrip(event) as { body: EventBody; original: Original };
  expect(read).toStrictEqual(event);
  expect({ body: EventBody.parse(read.body), original: Original.parse(read.original) }).toStrictEqual(event);
  expect(bodyOf(read.original.message)).toStrictEqual(event.body);
  const isRetry = message.type === 'system' && message.subtype === 'api_retry';
  const whole = isRetry ? { ...message, summary: describeRetry(message) } : message;
  expect(read.original.message).toEqual(whole);
  const stored = roundTrip(withoutTextsOf(read.body, read.original)) as Original;
  expect(originalMessage(stored, read.body)).toEqual(whole);
});

test('a malformed message becomes a plain notice', () => {
  const damaged = [
    { type: 'assistant' },
    { type: 'user', message: null },
    { type: 'system', subtype: 'background_tasks_changed' },
  ];
  for (const message of damaged) {
    const { event, signals } = translate(message as unknown as SDKMessage);
    expect(signals).toEqual([]);
    expect(event).toMatchObject({ body: { kind: 'notice' }, original: { message } });
  }
  const piece = { type: 'stream_event', event: null, parent_tool_use_id: null };
  expect(translate(piece as unknown as SDKMessage)).toEqual({ event: undefined, signals: [] });
});

test('the recording covers every kind of event that comes from Claude Code', () => {
  const kinds = new Set(RECORDED.map((message) => translate(message).event?.body.kind));
  expect([...kinds]).toEqual(
    expect.arrayContaining([
      'message',
      'init',
      'status',
      'retry',
      'background_tasks',
      'tool_refused',
      'result',
      'notice',
    ]),
  );
});

test('a tool call, its result and its exit code are recognised', () => {
  const content = [{ type: 'tool_result', tool_use_id: 't1', is_error: true, content: 'Exit code 3\nno such file' }];
  const message = { type: 'user', message: { role: 'user', content }, parent_tool_use_id: 'agent1', session_id: 's' };
  expect(translate(message as unknown as SDKMessage).event?.body).toStrictEqual({
    kind: 'message',
    role: 'user',
    parentToolUseId: 'agent1',
    blocks: [{ kind: 'tool_result', toolUseId: 't1', output: 'Exit code 3\nno such file', isError: true, exitCode: 3 }],
  });
});

test('a long text is stored once, however often it occurs, and is restored in full', () => {
  const long = fc.string({ minLength: 120, maxLength: 300 });
  const any = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(long, any, fc.string(), (text, more, key) => {
      const message = { type: 'user', message: { content: text }, [key]: [more, { [key]: text }], more };
      const body: EventBody = { kind: 'message', role: 'user', blocks: [{ kind: 'text', text }] };
      const original = withoutTextsOf(body, { message });
      expect(JSON.stringify(original)).not.toContain(JSON.stringify(text));
      expect(originalMessage(original, body)).toEqual(message);
    }),
  );
});
