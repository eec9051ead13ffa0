/** The server by itself, without the CLI. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cut, gate, hang, httpError, reply, text, tool } from '../../src/scripted-model/reply.ts';
import { startScriptedModel, type ScriptedModel } from '../../src/scripted-model/scripted-model.ts';

let model: ScriptedModel;

beforeEach(async () => {
  model = await startScriptedModel();
});

afterEach(() => model.close());

function post(body: unknown, path = '/v1/messages'): Promise<Response> {
  return fetch(model.url + path, { method: 'POST', body: JSON.stringify(body) });
}

function ask(...userTexts: string[]): Promise<Response> {
  const messages = userTexts.map((content) => ({ role: 'user', content }));
  return post({ model: 'claude-opus-5-5', messages });
}

async function textAnswer(...userTexts: string[]): Promise<string> {
  const { content } = (await (await ask(...userTexts)).json()) as { content: { text: string }[] };
  return content[0]?.text ?? '';
}

describe('script selection', () => {
  test('the last text decides, not the order of registration', async () => {
    model.on('second').always('to the second');
    model.on('first').always('to the first');

    expect(await textAnswer('first', 'second')).toBe('to the second');
    expect(await textAnswer('first', 'anything')).toBe('to the first');
  });

  test('of several scripts that match the same text, the latest wins', async () => {
    model.on('hello').always('older');
    model.on(/^hello/g).always('newer');

    expect(await textAnswer('hello')).toBe('newer');
    expect(await textAnswer('hello')).toBe('newer');
  });

  test('a function can match on the whole request', async () => {
    model.on(({ model: name }) => name === 'claude-opus-5-5').always('by the model');

    expect(await textAnswer('whatever')).toBe('by the model');
  });

  test('system reminders are ignored', async () => {
    model.on('secret').always('wrong');
    model.on('hello').always('right');

    expect(await textAnswer('hello', '<system-reminder>secret</system-reminder>')).toBe('right');
  });
});

describe('a script’s queue', () => {
  test('is used up in order, then falls back to always()', async () => {
    const script = model.on('x').reply('one', text('two')).always('more');
    expect(script.remaining).toBe(2);

    expect([await textAnswer('x'), await textAnswer('x'), await textAnswer('x'), await textAnswer('x')]).toEqual([
      'one',
      'two',
      'more',
      'more',
    ]);
    expect(script.remaining).toBe(0);
  });

  test('counts each error of a sequence, including one returned by a function', async () => {
    const script = model
      .on('x')
      .reply(httpError(529).times(2).then('through'), () => httpError(500).then('through again'));
    expect(script.remaining).toBe(4);

    const statuses = [];
    for (let asked = 0; asked < 5; asked++) statuses.push((await ask('x')).status);

    expect(statuses).toEqual([529, 529, 200, 500, 200]);
  });

  test('a gate holds the first reply of a sequence', async () => {
    const held = gate(httpError(429, { retryAfter: 7, message: 'not yet' }).then('now'));
    model.on('x').reply(held);

    const first = ask('x');
    await held.arrived;
    held.release();

    const response = await first;
    expect(response.headers.get('retry-after')).toBe('7');
    expect(await response.json()).toMatchObject({ error: { type: 'rate_limit_error', message: 'not yet' } });
    expect(await textAnswer('x')).toBe('now');
  });
});

describe('responses', () => {
  test('without stream, a message arrives in one piece, with unique tool ids', async () => {
    model
      .on('x')
      .always(reply().thinking('hm').tool('Bash', { command: 'ls' }).tool('Read').usage({ output_tokens: 7 }));

    const messages = (await Promise.all([ask('x'), ask('x')].map(async (response) => (await response).json()))) as {
      content: { id?: string }[];
    }[];

    expect(messages[0]).toMatchObject({
      model: 'claude-opus-5-5',
      stop_reason: 'tool_use',
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'tool_use', name: 'Bash', input: { command: 'ls' } },
        { type: 'tool_use', name: 'Read', input: {} },
      ],
      usage: { input_tokens: 100, output_tokens: 7 },
    });
    const ids = messages.flatMap(({ content }) => content.flatMap(({ id }) => id ?? []));
    expect(new Set(ids).size).toBe(4);
  });

  test('the stop reason can be chosen', async () => {
    model.on('x').reply(text('too lo').stop('max_tokens'));

    expect(await (await ask('x')).json()).toMatchObject({ stop_reason: 'max_tokens' });
  });

  test('a cut stream ends after the requested number of events', async () => {
    model.on('x').reply(cut(text('one two').chunks(7), 4));

    const response = await post({ stream: true, messages: [{ role: 'user', content: 'x' }] });

    const received: string[] = [];
    const reading = (async () => {
      for await (const piece of response.body!) received.push(Buffer.from(piece).toString());
    })();
    await expect(reading).rejects.toThrow('terminated');
    expect(received.join('').match(/^event: .*$/gm)).toEqual([
      'event: message_start',
      'event: content_block_start',
      'event: content_block_delta',
      'event: content_block_delta',
    ]);
  });

  test('tokens are counted, and other paths give harmless answers', async () => {
    expect(await (await post({ messages: [] }, '/v1/messages/count_tokens?beta=true')).json()).toEqual({
      input_tokens: expect.any(Number),
    });
    expect((await fetch(`${model.url}/api/hello`, { method: 'HEAD' })).status).toBe(200);
    expect((await fetch(`${model.url}/v1/models`)).status).toBe(404);
    expect((await fetch(`${model.url}/v1/messages`, { method: 'POST', body: 'no json' })).status).toBe(400);
    expect(model.unexpected).toEqual([]);
  });
});

describe('failures', () => {
  test('a reply function that throws is reported', async () => {
    model.on('x').reply(() => {
      throw new Error('wrong assumption');
    });

    expect((await ask('x')).ok).toBe(false);
    expect(() => model.assertAllExpected()).toThrow('on("x") threw Error: wrong assumption');
  });

  test('closing ends hanging and waiting requests', async () => {
    const held = gate('never');
    model.on('hang').reply(hang());
    model.on('held').reply(held);
    model.on('late').reply(text('never').delay(60_000));
    const asked = Promise.allSettled([ask('hang'), ask('held'), ask('late')]);
    await held.arrived;

    await model.close();

    expect((await asked).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  });

  test('an answer the client did not receive is not charged', async () => {
    const held = gate('never');
    model.on('x').reply(held);
    const leaving = new AbortController();
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'x' }] });
    const asked = fetch(`${model.url}/v1/messages`, { method: 'POST', body, signal: leaving.signal });
    await held.arrived;

    leaving.abort();
    await expect(asked).rejects.toThrow();

    expect(model.chargedUsd()).toBe(0);
  });

  test('awaiting an HTTP error by mistake fails instead of hanging', async () => {
    await expect(async () => await (httpError(500) as unknown as Promise<void>)).rejects.toThrow('do not await');
  });
});

test('without recording, only charges and unexpected requests are kept', async () => {
  const bench = await startScriptedModel({ record: 'none' });
  const script = bench.on('x').always(tool('Bash'));
  const send = (content: string) =>
    fetch(`${bench.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ messages: [{ role: 'user', content }] }),
    });

  await send('x');
  await send('forgotten');
  await bench.close();

  expect(bench.requests).toEqual([]);
  expect(bench.requestsFor(script)).toEqual([]);
  expect(bench.chargedUsd(script)).toBeGreaterThan(0);
  expect(bench.unexpected).toHaveLength(1);
});
