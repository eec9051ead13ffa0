import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { describe, expect, test, vi } from 'vitest';
import { cut, httpError } from '../../src/scripted-model/reply.ts';
import { shareConversation } from './cli-session.ts';

const conversation = shareConversation();

const isRetry = (message: SDKMessage): message is Extract<SDKMessage, { subtype: 'api_retry' }> =>
  message.type === 'system' && message.subtype === 'api_retry';

// One turn per case: the CLI doubles its wait after every fault in the same turn.
test.each([
  ['429', [httpError(429, { retryAfter: 0 })], [429]],
  ['529', [httpError(529)], [529]],
  ['500, twice', [httpError(500).times(2)], [500, 500]],
] as const)('HTTP %s is retried until there is an answer', async (what, faults, statuses) => {
  const { model, say } = conversation();
  const script = model.on(`despite ${what}`).reply(...faults, 'Through.');

  const { messages, result } = await say(`despite ${what}`);

  expect(result).toMatchObject({ subtype: 'success', is_error: false, result: 'Through.' });
  expect(messages.filter(isRetry).map(({ error_status: status }) => status)).toEqual(statuses);
  expect(model.requestsFor(script)).toHaveLength(statuses.length + 1);
});

test('a stream that breaks off is requested again', async () => {
  const { model, say } = conversation();
  const script = model.on('cut it').reply(cut('This is lost.'), 'Through.');

  expect((await say('cut it')).result).toMatchObject({ is_error: false, result: 'Through.' });
  expect(model.requestsFor(script)).toHaveLength(2);
});

describe('a permanent fault', () => {
  test('HTTP 400 ends the turn with its message', async () => {
    const { model, say } = conversation();
    model.on('in vain').always(httpError(400, { message: 'this cannot be' }));

    const { messages, result } = await say('in vain');

    expect(result).toMatchObject({ subtype: 'success', is_error: true });
    expect(result).toMatchObject({ result: expect.stringContaining('this cannot be') });
    expect(messages.filter(isRetry)).toEqual([]);
  });

  test('HTTP 401 is retried, and the caller sees it', async () => {
    const { model, session, say } = conversation();
    const script = model.on('without a key').always(httpError(401));

    const turn = say('without a key');
    await vi.waitFor(() => expect(model.requestsFor(script).length).toBeGreaterThan(1), { timeout: 20_000 });
    await session.interrupt();

    expect((await turn).messages.find(isRetry)).toMatchObject({ attempt: 1, error_status: 401 });
  });
});

describe('an unexpected request', () => {
  // A separate conversation: an unanswered prompt counts as part of the one before it.
  const fresh = shareConversation();

  test('ends the session at once and reports the prompt', async () => {
    const { model, say } = fresh();
    model.on('something else').always('Never said.');

    const { result } = await say('nobody expects this');

    expect(result).toMatchObject({ is_error: true, result: expect.stringContaining('nobody expects this') });
    expect(model.unexpected.at(-1)).toMatchObject({ reason: 'no script matches' });
    expect(() => model.assertAllExpected()).toThrow('nobody expects this');
  });

  test('is also reported when a script is used up', async () => {
    const { model, say } = fresh();
    model.on('once').reply('Once.');
    await say('once');

    const { result } = await say('once');

    expect(result.is_error).toBe(true);
    expect(() => model.assertAllExpected()).toThrow('on("once") is used up');
  });
});
