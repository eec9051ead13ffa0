import { expect, test } from 'vitest';
import { Replays } from './event-stream.ts';

const busyFor = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

test('principals take turns, whatever the number of their readers, and one page is made at a time', async () => {
  const replays = new Replays();
  const made: string[] = [];
  let making = 0;
  const page = (name: string) => async () => {
    expect(++making).toBe(1);
    await Promise.resolve();
    making--;
    made.push(name);
  };
  const many = [1, 2, 3, 4].map((reader) => replays.run('many', page(`many ${reader}`)));
  await Promise.all([...many, replays.run('one', page('one')), replays.run('other', page('other'))]);
  expect(made).toEqual(['many 1', 'many 2', 'one', 'other', 'many 3', 'many 4']);
});

test('a page that fails is the error of its reader alone', async () => {
  const replays = new Replays();
  const failing = replays.run('a', () => Promise.reject(new Error('no store')));
  const next = replays.run('a', () => Promise.resolve('page'));
  await expect(failing).rejects.toThrow('no store');
  expect(await next).toBe('page');
  expect(await replays.run('a', () => Promise.resolve('later'))).toBe('later');
});

test('between two pages everybody else gets as much time as a page takes', async () => {
  const replays = new Replays();
  const begin = performance.now();
  let turns = 0;
  const stop = setInterval(() => turns++, 1);
  await Promise.all(
    Array.from({ length: 10 }, () =>
      replays.run('a', async () => {
        busyFor(10);
        await Promise.resolve();
      }),
    ),
  );
  clearInterval(stop);
  expect(performance.now() - begin).toBeGreaterThan(9 * 20);
  expect(turns).toBeGreaterThanOrEqual(9);
});
