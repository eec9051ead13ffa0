import { expect } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import { verifies } from './requirements.ts';
import { check, start } from './steps.ts';

verifies(['fork.new-session', 'fork.original-untouched', 'fork.while-running'], async (variant) => {
  const h = await variant.share();
  const first = gate(text('I do'));
  h.model.on('remember seven').reply(first);
  h.model.on(/^by the way/).always(text('an aside'));
  const forked = h.model.on('and eight').reply(text('both'));
  const original = h.model.on('what was it').reply(text('seven'));
  const sessionId = await start(h, { prompt: 'remember seven', maxTurns: 9 });
  // In its very first turn.
  await first.arrived;
  const aside = { sessionId, prompt: 'by the way', forkSession: true, waitMs: 40_000 };
  const early = await h.ok('claude_code_reply', aside);
  expect(early).toMatchObject({ status: 'idle', result: { result: 'an aside' } });
  first.release();
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'I do' } });

  const before = await check(h, { action: 'poll', sessionId });
  const fork = await h.ok('claude_code_reply', { sessionId, prompt: 'and eight', forkSession: true, waitMs: 40_000 });
  expect(fork).toMatchObject({ status: 'idle', result: { result: 'both', sessionId: fork.sessionId } });
  expect(fork.sessionId).not.toBe(sessionId);
  expect(h.model.requestsFor(forked)[0]?.userTexts).toEqual(['remember seven', 'and eight']);
  expect(h.model.requestsFor(forked)[0]?.sessionId).toBe(fork.sessionId);
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId: fork.sessionId });
  expect(sessions[0].maxTurns).toBe(9);

  expect(await check(h, { action: 'poll', sessionId })).toEqual(before);
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what was it', waitMs: 40_000 });
  expect(next.result.result).toBe('seven');
  expect(h.model.requestsFor(original)[0]?.userTexts).toEqual(['remember seven', 'what was it']);

  const held = gate(text('the long answer'));
  h.model.on('a long task').reply(held);
  await h.ok('claude_code_reply', { sessionId, prompt: 'a long task' });
  await held.arrived;
  expect(await h.ok('claude_code_reply', aside)).toMatchObject({ status: 'idle', result: { result: 'an aside' } });
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'running' });
  held.release();
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'the long answer' } });
});
