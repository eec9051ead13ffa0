import type { Progress } from '@modelcontextprotocol/client';
import { describe, expect, test } from 'vitest';
import { cut, gate, hang, httpError, text, type ReplyLike } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';

/** The promised limit, from when Claude Code reports the error. */
const REPORTED_WITHIN_MS = 2_000;

interface Watched {
  readonly sessionId: string;
  /** The progress messages of one long wait. */
  readonly lines: { readonly text: string; readonly at: number }[];
}

/** A session whose first model request fails while a call is waiting for it. */
async function watchTrouble(h: Harness, trouble: ReplyLike): Promise<Watched> {
  const first = gate(trouble);
  h.model.on('in trouble').reply(first).always(text('through at last'));
  const sessionId = await h.converse('in trouble');
  const lines: Watched['lines'] = [];
  const onProgress = ({ message }: Progress): void => void lines.push({ text: String(message), at: Date.now() });
  // Ends with the session or the server, whichever comes first.
  h.call('claude_code_check', { action: 'wait', sessionId, waitMs: 60_000 }, { onProgress, timeout: 60_000 }).catch(
    () => undefined,
  );
  await first.arrived;
  await eventually(() => lines.length > 0, { what: 'the wait has begun' });
  first.release();
  return { sessionId, lines };
}

async function eventOf(h: Harness, sessionId: string, responseMode: string, type: string): Promise<Json> {
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, responseMode });
  return events.findLast(({ type: kind, data }: Json) => kind === type && JSON.stringify(data).includes('attempt'));
}

describe('API errors', () => {
  const harness = shareHarness();
  const troubles: [string, ReplyLike, RegExp][] = [
    ['429', httpError(429), /429.*attempt 1 of \d+/],
    ['529', httpError(529), /529.*attempt 1 of \d+/],
    ['500', httpError(500), /500.*attempt 1 of \d+/],
    ['a stream that breaks off', cut(text('half of this')), /the connection was lost.*attempt 1 of \d+/],
  ];
  test.for(troubles)('%s is reported within two seconds, in full events and progress', async ([, trouble, words]) => {
    const h = harness();
    const { sessionId, lines } = await watchTrouble(h, trouble);
    const line = await eventually(() => lines.find((candidate) => words.test(candidate.text)), {
      what: `progress says ${words.source}`,
    });
    const event = await eventOf(h, sessionId, 'full', 'progress');
    expect(event.data.summary).toMatch(words);
    expect(event.data).toMatchObject({ subtype: 'api_retry', attempt: 1 });
    expect(line.at - Date.parse(event.timestamp)).toBeLessThan(REPORTED_WITHIN_MS);
    const done = await h.waitUntilRest(sessionId);
    expect(done).toMatchObject({ status: 'idle', result: { result: 'through at last', isError: false } });
    // An error that has passed is no longer reported.
    expect(done.activity).not.toMatch(/attempt/);
  });

  test('a rejected login is explained in plain words at the first retry, even in minimal events', async () => {
    const h = harness();
    h.model.on('in trouble').always(httpError(401));
    const { sessionId } = await h.ok('claude_code', { prompt: 'in trouble', cwd: h.project });
    const lines: string[] = [];
    const stop = new AbortController();
    const waiting = h.call(
      'claude_code_check',
      { action: 'wait', sessionId, waitMs: 60_000 },
      { onProgress: ({ message }) => void lines.push(String(message)), signal: stop.signal, timeout: 60_000 },
    );
    const words = /login or key was rejected \(401.*attempt \d+ of \d+\. Run /;
    await eventually(() => lines.some((line) => words.test(line)), {
      what: 'progress explains the rejected login',
      within: 5_000,
    });
    const { events, activity, status } = await h.ok('claude_code_check', { action: 'poll', sessionId });
    expect(status).toBe('running');
    expect(activity).toMatch(words);
    const [told] = events.filter(({ type }: Json) => type === 'error');
    expect(told.data.message).toMatch(/attempt 1 of/);
    stop.abort();
    await waiting.catch(() => undefined);
    // Its retries would use up the replies of other tests.
    await h.ok('claude_code_session', { action: 'cancel', sessionId });
  });

  test('a request that is rejected for good ends the turn with the reason', async () => {
    const h = harness();
    h.model.on('in trouble').always(httpError(400, { message: 'your credit balance is too low' }));
    const sessionId = await h.converse('in trouble');
    const done = await h.waitUntilRest(sessionId);
    expect(done).toMatchObject({ status: 'error', result: { isError: true } });
    expect(done.result.result).toContain('redit balance is too low');
    h.model.on('paid now').reply(text('thank you'));
    await h.ok('claude_code_reply', { sessionId, prompt: 'paid now' });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'thank you' } });
  });

  test('a model that never answers can be interrupted, and the session continues', async () => {
    const h = harness();
    const silence = gate(hang());
    h.model.on('in trouble').reply(silence);
    h.model.on('another way').reply(text('that works'));
    const sessionId = await h.converse('in trouble');
    await silence.arrived;
    await h.ok('claude_code_session', { action: 'interrupt', sessionId });
    await h.ok('claude_code_reply', { sessionId, prompt: 'another way' });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'that works' } });
  });
});
