import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { textEvent } from '../../../test/harness/agent-messages.ts';
import { translate } from '../../driver/translate.ts';
import { EventLog } from './event-log.ts';

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
