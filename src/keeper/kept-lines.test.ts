import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeptLines } from './kept-lines.ts';
import { FrameReader, inputFrame, lineFrame, messageFrame, type Frame, type FromHub } from './protocol.ts';

const NONE: ReadonlySet<number> = new Set();

test('however output is cut into chunks, the same lines come out, numbered from 1', () => {
  const lines = fc.array(fc.stringMatching(/^[a-zé{}"]{0,20}$/), { maxLength: 20 });
  fc.assert(
    fc.property(lines, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (texts, cuts) => {
      const kept = new KeptLines();
      let rest = Buffer.from(texts.map((text) => `${text}\n`).join(''));
      const seen: string[] = [];
      for (let index = 0; rest.length > 0; index++) {
        const size = cuts[index % cuts.length] ?? 1;
        for (const { line, bytes } of kept.take(rest.subarray(0, size))) {
          seen.push(bytes.toString());
          expect(line).toBe(seen.length);
        }
        rest = rest.subarray(size);
      }
      expect(seen).toEqual(texts);
      expect(kept.after(0, NONE).map(({ bytes }) => bytes.toString())).toEqual(texts);
    }),
  );
});

test('acknowledged lines are dropped, the ones that are held stay and are delivered again', () => {
  const kept = new KeptLines();
  kept.take(Buffer.from('one\ntwo\nthree\nfour'));
  kept.drop(2, new Set([1]));
  expect(kept.after(2, new Set([1])).map(({ line }) => line)).toEqual([1, 3]);
  expect(kept.bytes).toBe('one'.length + 'three'.length + 'four'.length);
  expect(kept.end()).toMatchObject([{ line: 4 }]);
  kept.drop(4, NONE);
  expect([kept.bytes, kept.size, kept.last]).toEqual([0, 0, 4]);
});

test('frames survive any cut, and what is no frame is refused', () => {
  const run = '0f8fad5b-d9cb-469f-a165-70867728950e';
  const message: FromHub = { t: 'ack', run, stored: 3, seen: 4, held: [1] };
  const bytes = Buffer.concat([
    messageFrame(message),
    lineFrame(run, 7, Buffer.from('{"é":1}')),
    inputFrame(run, 'answer x', Buffer.from('line\n')),
  ]);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: bytes.length }), (size) => {
      const frames: Frame<FromHub>[] = [];
      const reader = new FrameReader<FromHub>((frame) => frames.push(frame));
      for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size));
      expect(frames).toEqual([
        { kind: 'message', message },
        { kind: 'line', run, line: 7, bytes: Buffer.from('{"é":1}') },
        { kind: 'input', run, id: 'answer x', bytes: Buffer.from('line\n') },
      ]);
    }),
  );
  const reader = new FrameReader(() => undefined);
  expect(() => reader.take(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toThrow('Not a frame');
});
