import { expect } from 'vitest';
import { gate, hang, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import { ENDLESS, hasBegun, runningCommands } from './endless-command.ts';
import { verifies } from './requirements.ts';
import { pollAll } from './steps.ts';

/** In the conversation that all of them share. */
async function runEndless(h: Harness): Promise<string> {
  h.model.on('run forever').reply(tool('Bash', { command: ENDLESS, description: 'endless' }));
  const sessionId = await h.converse('run forever');
  await h.allow(sessionId);
  await hasBegun(h);
  return sessionId;
}

verifies('session.interrupt', async (variant) => {
  const h = await variant.share();
  h.model.on('what now').reply(text('something else'));
  const sessionId = await runEndless(h);
  expect(await runningCommands(h)).not.toEqual([]);

  await h.interrupt(sessionId);
  expect(await h.look(sessionId)).toMatchObject({ status: 'rest', answer: undefined });
  await eventually(async () => (await runningCommands(h)).length === 0, { what: 'the command is gone' });

  await h.say(sessionId, 'what now');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'something else', error: undefined });
});

verifies(['session.interrupt', 'session.interrupt-rest'], { when: 'while the model is silent' }, async (variant) => {
  const h = await variant.share();
  const silence = gate(hang());
  h.model.on('think').reply(silence);
  h.model.on('what now').reply(text('awake'));
  const sessionId = await h.converse('think');
  await silence.arrived;
  await h.interrupt(sessionId);
  const stopped = await h.look(sessionId);
  expect(stopped).toMatchObject({ status: 'rest', answer: undefined });
  await h.interrupt(sessionId);
  expect(await h.look(sessionId)).toEqual(stopped);

  await h.say(sessionId, 'what now');
  const awake = await h.finish(sessionId);
  expect(awake).toMatchObject({ status: 'rest', answer: 'awake' });
  await h.interrupt(sessionId);
  expect(await h.look(sessionId)).toEqual(awake);
});

verifies('session.interrupt-request', async (variant) => {
  const h = await variant.share();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const sessionId = await h.converse('make a file');
  const { id } = await h.nextRequest(sessionId);
  await h.interrupt(sessionId);
  expect(await h.look(sessionId)).toMatchObject({ status: 'rest', requests: [] });
  await h.fails(...h.dialect.allow(sessionId, id), 'PERMISSION_REQUEST_NOT_FOUND');
});

verifies(['request.events', 'session.interrupt-rest'], { when: 'of an interrupt' }, async (variant) => {
  const h = await variant.share();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const sessionId = await h.converse('make a file');
  const { id: requestId } = await h.nextRequest(sessionId);
  expect(await h.interrupt(sessionId)).toMatchObject({ sessions: [{ sessionId, status: 'idle' }] });
  const outcomes = (await pollAll(h, sessionId)).filter(
    ({ type, data }) => type === 'permission_result' && data.requestId === requestId,
  );
  expect(outcomes).toMatchObject([{ data: { decision: 'deny', source: 'cancel' } }]);
  expect(await h.interrupt(sessionId)).toMatchObject({ message: 'Nothing was running.' });
});

verifies('status.interrupted', async (variant) => {
  const h = await variant.share();
  const sessionId = await runEndless(h);
  const status = (): Promise<unknown> => h.ok('claude_get_status', { sessionId });
  expect(await h.interrupt(sessionId)).toEqual({ sessionId, status: 'interrupted' });
  expect(await status()).toMatchObject({
    status: 'interrupted',
    toolUseEvents: [{ toolName: 'Bash', status: 'failed' }],
  });
  expect(await h.interrupt(sessionId)).toEqual({ sessionId, status: 'interrupted' });

  h.model.on('and ask').reply(tool('Write', { file_path: `${h.project}/a.txt`, content: 'a' }));
  expect(await h.say(sessionId, 'and ask')).toEqual({ sessionId, status: 'running' });
  await h.nextRequest(sessionId);
  await h.interrupt(sessionId);
  expect(await status()).toMatchObject({
    status: 'interrupted',
    pendingInputs: [],
    toolUseEvents: [{ toolName: 'Write', status: 'denied' }],
  });
});
