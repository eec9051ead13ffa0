import { expect, it } from 'vitest';
import { eventually } from './eventually.ts';

it('returns the first truthy value', async () => {
  let attempts = 0;
  const value = await eventually(() => (++attempts < 3 ? undefined : `attempt ${attempts}`), {
    what: 'the third attempt',
  });
  expect(value).toBe('attempt 3');
});

it('reports the last value it saw', async () => {
  const waiting = eventually(() => 0, { within: 50, what: 'the door is open' });
  await expect(waiting).rejects.toThrow('Not within 50 ms: the door is open. Last seen: 0');
});

it('keeps waiting while an assertion throws, and reports the last failure', async () => {
  const waiting = eventually(() => expect([1, 2]).toHaveLength(3), { within: 50, what: 'three of them' });
  await expect(waiting).rejects.toThrow('three of them. Last seen: it threw expected [ 1, 2 ] to have a length of 3');
});

it('does not wait for an attempt that hangs', async () => {
  const waiting = eventually(() => new Promise(() => undefined), { within: 50, what: 'an end' });
  await expect(waiting).rejects.toThrow('the first attempt did not finish');
});
