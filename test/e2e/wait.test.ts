import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { verifies } from './requirements.ts';

/** A wait that nobody should have to sit through. */
const LONG_MS = 45_000;

verifies(['look.at-once', 'wait.time-up', 'wait.until-rest', 'wait.two-at-once'], async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.converse('say it');
  await held.arrived;
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined, requests: [] });
  expect(await h.watch(sessionId, 50)).toMatchObject({ status: 'running', answer: undefined });

  const waits = [h.watch(sessionId), h.watch(sessionId)];
  // This answer comes after the server has begun both waits.
  await h.look(sessionId);
  held.release();
  for (const wait of waits) expect(await wait).toMatchObject({ status: 'rest', answer: 'done' });
});

// That it comes every 5 s though nothing changes is shown by a clock of its own, in test/mcp/progress.test.ts.
verifies('wait.progress', async (variant) => {
  const h = await variant.share();
  const [first, last] = [gate(tool('Bash', { command: 'echo one', description: 'say one' })), gate(text('done'))];
  h.model.on('say it').reply(first, last);
  const sessionId = await h.converse('say it');
  await first.arrived;
  const seen: { progress: number; message?: string | undefined }[] = [];
  const waiting = h.ok(...h.dialect.watch(sessionId, LONG_MS), {
    onProgress: ({ progress, message }) => {
      seen.push({ progress, message });
      first.release();
      if (message?.startsWith('1 tool') === true) last.release();
    },
  });
  expect(h.dialect.view(await waiting)).toMatchObject({ status: 'rest', answer: 'done' });
  expect(seen.length).toBeGreaterThanOrEqual(2);
  const numbers = seen.map(({ progress }) => progress);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(seen.map(({ message }) => message)).toContainEqual(expect.stringMatching(/^1 tool \(1 Bash\), now: /));
});

verifies('wait.client-cancels', async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.converse('say it');
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
