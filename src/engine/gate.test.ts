import { expect, test } from 'vitest';
import { deferred } from './clock.ts';
import { Gate } from './gate.ts';

test('what is sent waits for the store, in order, and is sent at once where there is none', async () => {
  const stored = deferred<void>();
  const sent: string[] = [];
  const gate = new Gate({ everStored: () => stored.promise });
  gate.afterStored(() => void sent.push('first'));
  gate.afterStored(() => void sent.push('second'));
  new Gate().afterStored(() => void sent.push('without a store'));
  expect(sent).toEqual(['without a store']);
  stored.resolve();
  await expect.poll(() => sent).toEqual(['without a store', 'first', 'second']);
});

test.each([
  ['after the store', (): Promise<void> => Promise.resolve()],
  ['without one', (): undefined => undefined],
])('a failure to send %s is reported, and neither stops the others nor ends the process', async (_when, everStored) => {
  const failures: unknown[] = [];
  const sent: string[] = [];
  const gate = new Gate({ everStored }, (error) => void failures.push(error));
  gate.afterStored(() => {
    throw new Error('no form');
  });
  gate.afterStored(() => void sent.push('second'));
  await expect.poll(() => sent).toEqual(['second']);
  expect(failures).toEqual([new Error('no form')]);
});

test('a decision that nobody waits for any more does not wait for the store', async () => {
  const withdrawn = new AbortController();
  const passed = new Gate({ everStored: () => new Promise(() => undefined) }).passed(withdrawn.signal);
  withdrawn.abort();
  await expect(passed).resolves.toBeUndefined();
});
