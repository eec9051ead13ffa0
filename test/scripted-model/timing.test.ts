import { expect, test, vi } from 'vitest';
import { gate, hang, stall } from '../../src/scripted-model/reply.ts';
import { collect, openBench, Prompts } from './cli-session.ts';

test('a gate holds the answer until it is released', async () => {
  const { model, run } = await openBench();
  const held = gate('At last.');
  model.on('wait').reply(held);
  let ended = false;

  const running = run('wait').finally(() => (ended = true));
  const request = await held.arrived;

  expect(request.lastUserText).toBe('wait');
  expect(ended).toBe(false);
  held.release();
  expect((await running).result).toMatchObject({ result: 'At last.' });
});

test.each([
  ['never answers', hang()],
  ['stops in the middle', stall('These words never all arrive.')],
])('a model that %s can be interrupted, and the session goes on', async (_, silent) => {
  const { model, start } = await openBench();
  const script = model.on('first').reply(silent);
  model.on('second').reply('Still here.');
  const prompts = new Prompts().say('first');
  const session = start(prompts);

  const ending = collect(session, (message) => {
    if (message.type !== 'result') return;
    if (message.subtype === 'error_during_execution') prompts.say('second');
    else prompts.end();
  });
  await vi.waitFor(() => expect(model.requestsFor(script)).toHaveLength(1), { timeout: 8_000 });
  await session.interrupt();

  expect((await ending).result).toMatchObject({ subtype: 'success', result: 'Still here.' });
  model.assertAllExpected();
});

test('sessions side by side get their own answers, in whatever order they are released', async () => {
  const { model, run } = await openBench();
  const [one, two] = [gate('One.'), gate('Two.')];
  model.on('prompt one').reply(one);
  model.on('prompt two').reply(two);

  const running = Promise.all([run('prompt one'), run('prompt two')]);
  const requests = await Promise.all([one.arrived, two.arrived]);
  two.release();
  one.release();

  const results = (await running).map(({ result }) => result);
  expect(results).toMatchObject([{ result: 'One.' }, { result: 'Two.' }]);
  expect(requests[0].sessionId).not.toBe(requests[1].sessionId);
});
