import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { describe, expect, test } from 'vitest';
import { cut, httpError } from '../../src/scripted-model/reply.ts';
import { openBench } from './cli-session.ts';

const isRetry = (message: SDKMessage): message is Extract<SDKMessage, { subtype: 'api_retry' }> =>
  message.type === 'system' && message.subtype === 'api_retry';

test('faults that pass are retried until the answer comes, and a stream that is cut is asked for again', async () => {
  const { model, run } = await openBench();
  const script = model
    .on('try')
    .reply(
      httpError(429, { retryAfter: 0 }),
      httpError(529),
      httpError(500).times(2).then(cut('This is lost.')),
      'Through.',
    );

  const { messages, result } = await run('try');

  expect(result).toMatchObject({ subtype: 'success', is_error: false, result: 'Through.' });
  const retried = messages.filter(isRetry).map(({ error_status: status }) => status);
  expect(retried.slice(0, 4)).toEqual([429, 529, 500, 500]);
  expect(model.requestsFor(script)).toHaveLength(6);
  expect(script.remaining).toBe(0);
});

describe('a fault that stays', () => {
  test('HTTP 400 ends the turn with its message', async () => {
    const { model, run } = await openBench();
    model.on('try').always(httpError(400, { message: 'this cannot be' }));

    const { messages, result } = await run('try');

    expect(result).toMatchObject({ subtype: 'success', is_error: true });
    expect(result).toMatchObject({ result: expect.stringContaining('this cannot be') });
    expect(messages.filter(isRetry)).toEqual([]);
  });

  test('HTTP 401 is retried, which the caller sees', async () => {
    const { model, start } = await openBench();
    model.on('try').always(httpError(401));

    for await (const message of start('try')) {
      if (!isRetry(message)) continue;
      expect(message).toMatchObject({ attempt: 1, error_status: 401 });
      break;
    }
    expect.assertions(1);
  });
});

describe('an unexpected request', () => {
  test('ends the session at once and tells what was asked', async () => {
    const { model, run } = await openBench();
    model.on('something else').always('Never said.');

    const { result } = await run('nobody expects this');

    expect(result).toMatchObject({ is_error: true, result: expect.stringContaining('nobody expects this') });
    expect(model.unexpected).toMatchObject([{ reason: 'no script matches' }]);
    expect(() => model.assertAllExpected()).toThrow('nobody expects this');
  });

  test('is also what a script that is used up does not answer', async () => {
    const { model, run } = await openBench();
    model.on('once').reply('Once.');
    await run('once');

    const { result } = await run('once');

    expect(result.is_error).toBe(true);
    expect(() => model.assertAllExpected()).toThrow('on("once") is used up');
  });
});
