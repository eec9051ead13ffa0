import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventParser } from './server-sent-events.ts';

const STREAM =
  ': hello\r\n\r\nid: 1\nevent: session\ndata: {"a":1}\n\nid: 2\rdata: x\rdata: y\r\rdata:z\n\nevent: lost\n\ndata: end\n\n';

test('the same events are parsed however the stream is split', () => {
  const whole = new EventParser().push(STREAM);
  expect(whole).toEqual([
    { id: '1', event: 'session', data: '{"a":1}' },
    { id: '2', event: 'message', data: 'x\ny' },
    { id: '2', event: 'message', data: 'z' },
    { id: '2', event: 'message', data: 'end' },
  ]);
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 12 }), (cuts) => {
      const parser = new EventParser();
      const at = [0, ...cuts.sort((a, b) => a - b), STREAM.length];
      expect(at.slice(1).flatMap((end, index) => parser.push(STREAM.slice(at[index], end)))).toEqual(whole);
    }),
  );
});
