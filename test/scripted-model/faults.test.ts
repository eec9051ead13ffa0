import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { describe, expect, test } from 'vitest';
import { cut, httpError } from '../../src/scripted-model/reply.ts';
import { openBench } from './cli-session.ts';

const isRetry = (message: SDKMessage): message is Extract<SDKMessage, { subtype: 'api_retry' }> =>
  message.type === 'system' && message.subtype === 'api_retry';

describe('a fault that passes', () => {
  test.each([
    [429, { retryAfter: 0 }],
    [529, {}],
    [500, {}],
  ])('HTTP %i is retried until the answer comes', async (status, details) => {
    const { model, run } = await openBench();
    const script = model.on('try').reply(httpError(status, details).times(2).then('Through.'));

    const { messages, result } = await run('try');

    expect(result).toMatchObject({ subtype: 'success', is_error: false, result: 'Through.' });
    expect(messages.filter(isRetry)).toMatchObject([{ error_status: status }, { error_status: status }]);
    expect(script.remaining).toBe(0);
  });

  test('a stream that is cut half-way is asked for again', async () => {
    const { model, run } = await openBench();
    const script = model.on('try').reply(cut('This is lost.'), 'This is whole.');

    const { result } = await run('try');

    expect(result).toMatchObject({ subtype: 'success', result: 'This is whole.' });
    expect(model.requestsFor(script)).toHaveLength(2);
  });
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
