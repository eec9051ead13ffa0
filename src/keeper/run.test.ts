import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test, vi } from 'vitest';
import type { StartedChild } from '../platform/process-home.ts';
import { MAX_KEPT_BYTES } from './kept-lines.ts';
import { KeptRun, type RunReader } from './run.ts';

function startRun(): {
  run: KeptRun;
  child: EventEmitter & { stdout: PassThrough; stderr: PassThrough };
  written: string[];
} {
  const child = Object.assign(new EventEmitter(), { pid: 1, stdout: new PassThrough(), stderr: new PassThrough() });
  const written: string[] = [];
  const stdin = new PassThrough().on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const run = new KeptRun('run', 'label', { child, stdin } as unknown as StartedChild);
  return { run, child, written };
}

/** What a hub gets, and nothing of what it does with it. */
function reader(): RunReader & { lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    line: (_run, line, bytes) => lines.push(`${String(line)} ${bytes.toString()}`),
    stderr: () => undefined,
    exit: (_run, { code }) => lines.push(`exit ${String(code)}`),
  };
}

const read = async (run: KeptRun, after: number): Promise<string[]> => {
  const hub = reader();
  run.read(after, hub);
  await vi.waitFor(() => expect(hub.lines.length).toBeGreaterThan(0), { timeout: 30_000 });
  return hub.lines;
};

test('the next hub reads on after the last line that was stored; a request without an answer comes again', async () => {
  const { run, child } = startRun();
  child.stdout.write('one\ntwo\nthree\n');
  expect(await read(run, 0)).toEqual(['1 one', '2 two', '3 three']);
  run.acknowledge(3, 3, [2]);
  run.unread('died');
  child.stdout.write('four\n');
  expect(await read(run, 3)).toEqual(['2 two', '4 four']);
});

test('what was written is not written again under the same id', async () => {
  const { run, written } = startRun();
  for (const id of ['a', 'a', 'b', '', '']) run.write(id, Buffer.from(`${id}\n`));
  await vi.waitFor(() => expect(written.join('')).toBe('a\nb\n\n\n'), { timeout: 30_000 });
});

test('a line on which two hubs died is suspect; one that a hub left in good order is not', async () => {
  const { run, child } = startRun();
  child.stdout.write('fine\npoison\n');
  await read(run, 0);
  run.acknowledge(1, 1, []);
  run.unread('died');
  expect(run.state.suspect).toEqual({ line: 2, deaths: 1 });
  await read(run, 1);
  run.unread('left');
  expect(run.state.suspect).toEqual({ line: 2, deaths: 1 });
  await read(run, 1);
  run.unread('died');
  expect(run.state.suspect).toEqual({ line: 2, deaths: 2 });
});

test('a hub that had coped with everything it was given did not die of it', async () => {
  const { run, child } = startRun();
  child.stdout.write('fine\n');
  await read(run, 0);
  run.acknowledge(0, 1, []);
  run.unread('died');
  expect(run.state.suspect).toBeUndefined();
});

test('beyond 8 MiB of unread output the process waits, and goes on once it is read', async () => {
  const { run, child } = startRun();
  const megabyte = 1024 * 1024;
  const line = `${'x'.repeat(megabyte)}\n`;
  for (let count = 0; count < 12; count++) child.stdout.write(line);
  await vi.waitFor(() => expect(child.stdout.isPaused()).toBe(true), { timeout: 30_000 });
  const hub = reader();
  run.read(0, hub);
  expect(hub.lines).toHaveLength(MAX_KEPT_BYTES / megabyte);
  run.acknowledge(hub.lines.length, hub.lines.length, []);
  await vi.waitFor(() => expect(hub.lines).toHaveLength(12), { timeout: 30_000 });
});

test('the last words of a process that ends are told before its end', async () => {
  const { run, child } = startRun();
  child.stdout.end('unfinished');
  child.emit('close', 3, null);
  expect(run.isGone).toBe(true);
  expect((await read(run, 0)).at(-1)).toBe('exit 3');
});
