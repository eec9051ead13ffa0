import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { textEvent } from '../../../test/harness/agent-messages.ts';
import { sampleEvent } from '../../../test/harness/sample-events.ts';
import { EVENT_TYPES } from '../../schema/enums.ts';
import { KEPT_LONGEST, SessionEvent, type EventType } from '../../schema/events.ts';
import { EventLog } from './event-log.ts';
import { translate } from '../../driver/translate.ts';

const ROOMY = { maxEvents: 1_000, maxBytes: 1_000_000 };

function logOf(limits: Partial<typeof ROOMY>, ...types: EventType[]): EventLog {
  const log = new EventLog({ ...ROOMY, ...limits });
  for (const type of types) log.append(sampleEvent(type), 0);
  return log;
}

const idsFrom = (log: EventLog, cursor: number): number[] => log.from(cursor).events.map(({ id }) => id);

test('ids count up from one', () => {
  const log = logOf({}, 'output', 'progress', 'output');
  expect(idsFrom(log, 0)).toEqual([1, 2, 3]);
  expect(idsFrom(log, 2)).toEqual([2, 3]);
  expect(idsFrom(log, 4)).toEqual([]);
  expect(log.from(4)).toMatchObject({ resetTo: undefined });
  expect(log.nextId).toBe(4);
});

test('the oldest ordinary event is dropped first; requests and their results stay', () => {
  const log = logOf(
    { maxEvents: 3 },
    'output',
    'output',
    'permission_request',
    'output',
    'permission_result',
    'output',
    'result',
  );
  expect(idsFrom(log, 0)).toEqual([2, 3, 4, 5, 6, 7]);
  expect(log.from(1).resetTo).toBe(2);
  expect(log.from(2).resetTo).toBeUndefined();
});

test('requests and results are dropped beyond twice the limit', () => {
  const log = logOf({ maxEvents: 2 }, ...Array.from({ length: 10 }, (): EventType => 'permission_request'));
  expect(log.length).toBe(4);
  expect(log.from(0).resetTo).toBe(7);
});

test('large events are bounded by total bytes', () => {
  const log = new EventLog({ maxEvents: 100, maxBytes: 10_000 });
  for (let index = 0; index < 50; index++) log.append(textEvent('x'.repeat(1_000)), index);
  expect(log.length).toBeLessThan(10);
  expect(log.length).toBeGreaterThan(5);
});

test('a single event larger than the limit is still kept', () => {
  const log = new EventLog({ maxEvents: 10, maxBytes: 100 });
  log.append(textEvent('x'.repeat(1_000)), 0);
  expect(log.length).toBe(1);
});

test('under any load: bounded, in order, no unreported loss', () => {
  const entry = fc.record({ type: fc.constantFrom(...EVENT_TYPES), size: fc.nat({ max: 400 }), read: fc.boolean() });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 200 }), fc.integer({ min: 1, max: 12 }), (entries, maxEvents) => {
      const log = new EventLog({ maxEvents, maxBytes: 3_000 });
      let cursor = 1;
      for (const { type, size, read } of entries) {
        const { id } = log.append(sampleEvent(type, 'x'.repeat(size)), 0);
        expect(id).toBe(log.nextId - 1);
        const { events } = log.from(0);
        expect(events.at(-1)?.id).toBe(id);
        const ids = events.map((event) => event.id);
        expect(ids).toEqual(ids.toSorted((a, b) => a - b));
        expect(events.filter((event) => !KEPT_LONGEST.has(event.type)).length).toBeLessThanOrEqual(maxEvents + 1);
        expect(events.length).toBeLessThanOrEqual(2 * maxEvents);
        if (!read) continue;
        const slice = log.from(cursor);
        const complete = slice.events.length === log.nextId - cursor;
        expect(complete || slice.resetTo !== undefined).toBe(true);
        cursor = log.nextId;
      }
    }),
  );
});

describe('partial messages', () => {
  const partials = (log: EventLog): unknown[] => log.from(0).events.map(({ body }) => body);

  test('grow one event until it has been read', () => {
    const log = new EventLog(ROOMY);
    log.beginPartial('m1');
    for (const piece of ['a', 'b', 'c']) log.appendPartial(piece, 0);
    expect(partials(log)).toEqual([{ kind: 'partial', messageId: 'm1', text: 'abc' }]);
    log.markDelivered(1);
    log.appendPartial('d', 0);
    log.appendPartial('e', 0);
    expect(partials(log)).toEqual([
      { kind: 'partial', messageId: 'm1', text: 'abc' },
      { kind: 'partial', messageId: 'm1', text: 'de' },
    ]);
  });

  test('are not merged into the next message', () => {
    const log = new EventLog(ROOMY);
    log.beginPartial('m1');
    log.appendPartial('a', 0);
    log.beginPartial('m2');
    log.appendPartial('b', 0);
    expect(partials(log)).toMatchObject([
      { messageId: 'm1', text: 'a' },
      { messageId: 'm2', text: 'b' },
    ]);
  });

  test('are read exactly once, whenever the reader polls', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ piece: fc.string({ minLength: 1 }), read: fc.boolean() })), (pieces) => {
        const log = new EventLog(ROOMY);
        log.beginPartial('m');
        let cursor = 0;
        let seen = '';
        const read = (): void => {
          for (const { body } of log.from(cursor).events) if (body.kind === 'partial') seen += body.text;
          cursor = log.nextId;
          log.markDelivered(cursor - 1);
        };
        for (const each of pieces) {
          log.appendPartial(each.piece, 0);
          if (each.read) read();
        }
        read();
        expect(seen).toBe(pieces.map(({ piece }) => piece).join(''));
      }),
    );
  });
});

test('newestFirst reverses the order', () => {
  expect([...logOf({}, 'output', 'result').newestFirst()].map(({ id }) => id)).toEqual([2, 1]);
});

test('a log continues after a restart: same events, same cursors, and losses are still reported', () => {
  const type = fc.constantFrom(...EVENT_TYPES);
  fc.assert(
    fc.property(
      fc.array(type, { maxLength: 40 }),
      fc.array(type, { maxLength: 10 }),
      fc.nat(45),
      (before, after, cursor) => {
        const limits = { maxEvents: 8, maxBytes: 100_000 };
        const log = logOf(limits, ...before);
        const stored = JSON.stringify(log.from(0).events.map((event) => SessionEvent.parse(event)));
        const restored = new EventLog({ ...ROOMY, ...limits });
        restored.restore(SessionEvent.array().parse(JSON.parse(stored)), log.nextId, log.droppedThrough);
        for (const each of [log, restored]) for (const next of after) each.append(sampleEvent(next), 1);
        expect(restored.from(cursor)).toEqual(log.from(cursor));
        expect(restored).toMatchObject({ nextId: log.nextId, length: log.length, droppedThrough: log.droppedThrough });
      },
    ),
  );
});

test('every event is announced once, in order, and a growing one only when complete', () => {
  const step = fc.oneof(fc.constantFrom('append', 'begin', 'read', 'pack'), fc.record({ piece: fc.string() }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const announced: SessionEvent[] = [];
      const log = new EventLog(ROOMY, (event) => announced.push(structuredClone(event)));
      for (const each of steps) {
        if (typeof each !== 'string') log.appendPartial(each.piece, 0);
        else if (each === 'append') log.append(sampleEvent('output'), 0);
        else if (each === 'begin') log.beginPartial('m');
        else if (each === 'read') log.markDelivered(log.nextId - 1);
        else log.pack();
      }
      log.append(sampleEvent('result'), 0);
      expect(announced).toEqual(log.from(0).events);
    }),
  );
});

const LIMITS = { maxEvents: 20, maxBytes: 100_000 };

function filled(count: number): EventLog {
  const log = new EventLog(LIMITS);
  for (let index = 0; index < count; index++) log.append(textEvent(`event ${index}`), index);
  return log;
}

describe('a packed log', () => {
  test('reads the same as before, from every cursor', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.nat(45), (count, cursor) => {
        const log = filled(count);
        const before = structuredClone(log.from(cursor));
        const length = log.length;
        log.pack();
        expect(log.from(cursor)).toEqual(before);
        expect(log.length).toBe(length);
        expect([...log.newestFirst()].reverse()).toEqual(filled(count).from(0).events);
      }),
    );
  });

  test('keeps the original SDK message next to its event', () => {
    const log = new EventLog(LIMITS);
    const content = [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'ls' } }];
    const said = { type: 'assistant', message: { role: 'assistant', content }, uuid: 'u1', session_id: 's1' };
    const { event } = translate(said as unknown as SDKMessage);
    if (!event) throw new Error('no event');
    log.append(event.body, 5, event.original);
    const expected = { id: 1, type: 'output', at: 5, body: event.body, original: { message: said } };
    const read = (): unknown => JSON.parse(JSON.stringify(log.from(0).events));
    expect(read()).toEqual([expected]);
    log.pack();
    expect(read()).toEqual([expected]);
    log.append(textEvent('more'), 6);
    expect(read()).toMatchObject([expected, { id: 2 }]);
  });

  test('continues where it left off: ids increase, the oldest are dropped', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('append', 'partial', 'pack'), { maxLength: 60 }), (steps) => {
        const packed = new EventLog(LIMITS);
        const plain = new EventLog(LIMITS);
        for (const [index, step] of steps.entries()) {
          if (step === 'pack') {
            packed.pack();
            // Packing ends a growing partial message; so does a new one.
            plain.beginPartial('next');
            packed.beginPartial('next');
            continue;
          }
          for (const log of [packed, plain]) {
            if (step === 'append') log.append(textEvent(`event ${index}`), index);
            else log.appendPartial(`piece ${index}`, index);
          }
        }
        expect(packed.from(0)).toEqual(plain.from(0));
        expect(packed.nextId).toBe(plain.nextId);
      }),
    );
  });
});
