import { expect, test, vi } from 'vitest';
import { gate, hang, stall } from '../../src/scripted-model/reply.ts';
import { shareConversation } from './cli-session.ts';

const conversation = shareConversation();

test('a gate holds the answer until it is released', async () => {
  const { model, say } = conversation();
  const held = gate('At last.');
  model.on('wait').reply(held);
  let ended = false;

  const running = say('wait').finally(() => (ended = true));
  const request = await held.arrived;

  expect(request.lastUserText).toBe('wait');
  expect(ended).toBe(false);
  held.release();
  expect((await running).result).toMatchObject({ result: 'At last.' });
});

test.each([
  ['never answers', hang()],
  ['stops in the middle', stall('These words never all arrive.')],
])('a model that %s can be interrupted, and the session continues', async (what, silent) => {
  const { model, session, say } = conversation();
  const script = model.on(`silence: ${what}`).reply(silent);
  model.on(`after one that ${what}`).reply('Still here.');

  const turn = say(`silence: ${what}`);
  await vi.waitFor(() => expect(model.requestsFor(script)).toHaveLength(1), { timeout: 8_000 });
  await session.interrupt();

  expect((await turn).result).toMatchObject({ subtype: 'error_during_execution' });
  const { result } = await say(`after one that ${what}`);
  expect(result).toMatchObject({ subtype: 'success', result: 'Still here.' });
  model.assertAllExpected();
});

test('concurrent sessions get their own answers, in whatever order they are released', async () => {
  const { model, run, say } = conversation();
  const [one, two] = [gate('One.'), gate('Two.')];
  model.on('prompt one').reply(one);
  model.on('prompt two').reply(two);

  const running = Promise.all([say('prompt one'), run('prompt two')]);
  const requests = await Promise.all([one.arrived, two.arrived]);
  two.release();
  one.release();

  const results = (await running).map(({ result }) => result);
  expect(results).toMatchObject([{ result: 'One.' }, { result: 'Two.' }]);
  expect(requests[0].sessionId).not.toBe(requests[1].sessionId);
});
