import { expect, it } from 'vitest';
import { eventually } from './eventually.ts';

it('returns the first truthy value', async () => {
  let looks = 0;
  const value = await eventually(() => (++looks < 3 ? undefined : `look ${looks}`), { what: 'the third look' });
  expect(value).toBe('look 3');
});

it('says what was last seen', async () => {
  const look = eventually(() => 0, { within: 50, what: 'the door is open' });
  await expect(look).rejects.toThrow('Not within 50 ms: the door is open. Last seen: 0');
});

it('takes an assertion that throws for "not yet", and tells it in the end', async () => {
  const look = eventually(() => expect([1, 2]).toHaveLength(3), { within: 50, what: 'three of them' });
  await expect(look).rejects.toThrow('three of them. Last seen: it threw expected [ 1, 2 ] to have a length of 3');
});

it('does not wait for a look that hangs', async () => {
  const look = eventually(() => new Promise(() => undefined), { within: 50, what: 'an end' });
  await expect(look).rejects.toThrow('the first look did not end');
});
