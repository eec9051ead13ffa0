import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { verifies } from './requirements.ts';

/** A wait that nobody should have to sit through. */
const LONG_MS = 45_000;

verifies(['look.at-once', 'wait.time-up', 'wait.until-rest', 'wait.two-at-once'], async (variant) => {
  const h = await variant.start();
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.begin('say it');
  await held.arrived;
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined, requests: [] });
  expect(await h.watch(sessionId, 50)).toMatchObject({ status: 'running', answer: undefined });

  const waits = [h.watch(sessionId), h.watch(sessionId)];
  // This answer comes after the server has begun both waits.
  await h.look(sessionId);
  held.release();
  for (const wait of waits) expect(await wait).toMatchObject({ status: 'rest', answer: 'done' });
});

verifies('wait.progress', async (variant) => {
  const h = await variant.start();
  const held = gate(text('done'));
  h.model.on('say it').reply(tool('Bash', { command: 'echo one', description: 'say one' }), held);
  const sessionId = await h.begin('say it');
  await held.arrived;
  const seen: { progress: number; message?: string | undefined; at: number }[] = [];
  const startedAt = performance.now();
  const waiting = h.ok(...h.dialect.watch(sessionId, LONG_MS), {
    onProgress: ({ progress, message }) => {
      seen.push({ progress, message, at: performance.now() - startedAt });
      if (seen.length === 3) held.release();
    },
  });
  expect(h.dialect.view(await waiting)).toMatchObject({ status: 'rest', answer: 'done' });
  expect(seen.length).toBeGreaterThanOrEqual(3);
  const numbers = seen.map(({ progress }) => progress);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(seen[0]?.message).toMatch(/^1 tool \(1 Bash\), now: /);
  const times = [0, ...seen.map(({ at }) => at)];
  // Five seconds are the promise.
  for (const [index, at] of times.entries()) expect(at - (times[index - 1] ?? 0)).toBeLessThan(5_000);
});

verifies('wait.client-cancels', async (variant) => {
  const h = await variant.start();
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.begin('say it');
  await held.arrived;
  const interest = new AbortController();
  const waiting = h.call(...h.dialect.watch(sessionId, LONG_MS), {
    signal: interest.signal,
    onProgress: () => interest.abort(),
  });
  await expect(waiting).rejects.toThrow();
  expect(await h.look(sessionId)).toMatchObject({ status: 'running' });
  held.release();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'done' });
});
