import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { reply, text, tool } from '../../src/scripted-model/reply.ts';
import { openBench, shareConversation } from './cli-session.ts';

const conversation = shareConversation({ includePartialMessages: true });

test('a text answers the prompt', async () => {
  const { model, say } = conversation();
  const script = model.on('say hello').reply('Hello.');

  const { result } = await say('say hello');

  expect(result).toMatchObject({ subtype: 'success', result: 'Hello.' });
  expect(script.remaining).toBe(0);
  expect(model.requestsFor(script)).toMatchObject([
    { path: '/v1/messages?beta=true', stream: true, lastUserText: 'say hello', sessionId: result.session_id },
  ]);
  model.assertAllExpected();
});

test('thinking comes before the text', async () => {
  const { model, say } = conversation();
  model.on('ponder').reply(reply().thinking('Let me see.').text('Done.'));

  const { messages } = await say('ponder');

  const blocks = messages.flatMap((message) => (message.type === 'assistant' ? message.message.content : []));
  expect(blocks).toMatchObject([
    { type: 'thinking', thinking: 'Let me see.' },
    { type: 'text', text: 'Done.' },
  ]);
});

test('several tools in one message run, and all their results are sent back', async () => {
  const { model, say, home } = conversation();
  const script = model
    .on('run both')
    .reply(
      reply()
        .text('Both at once.')
        .tool('Bash', { command: 'echo $((40 + 2))' })
        .tool('Bash', { command: 'touch made' }),
      'Both ran.',
    );

  const { result } = await say('run both');

  expect(result).toMatchObject({ subtype: 'success', result: 'Both ran.' });
  await access(join(home, 'made'));
  const results = model.requestsFor(script)[1]?.toolResults ?? [];
  expect(results).toMatchObject([{ text: '42', isError: false }, { isError: false }]);
  expect(new Set(results.map(({ toolUseId }) => toolUseId)).size).toBe(2);
});

test('a reply function sees the request it answers', async () => {
  const { model, say } = conversation();
  model
    .on('echo the result')
    .reply(tool('Bash', { command: 'echo from-the-tool' }), ({ toolResults }) => `It said ${toolResults[0]?.text}`);

  const { result } = await say('echo the result');

  expect(result).toMatchObject({ result: 'It said from-the-tool' });
});

test('structured output is the input of the StructuredOutput tool', async () => {
  const { model, run } = await openBench();
  const script = model.on('count the files').reply(tool('StructuredOutput', { count: 3 }), 'Counted.');

  const { result } = await run('count the files', {
    outputFormat: {
      type: 'json_schema',
      schema: { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] },
    },
  });

  expect(result).toMatchObject({ subtype: 'success', structured_output: { count: 3 } });
  expect(model.requestsFor(script)[0]?.tools).toContain('StructuredOutput');
  model.assertAllExpected();
});

test('a text in chunks arrives as that many deltas, and complete', async () => {
  const { model, say } = conversation();
  model.on('stream it').reply(text('0123456789 🙂🙂').chunks(5));

  const { messages, result } = await say('stream it');

  const deltas = messages.filter(
    (message) => message.type === 'stream_event' && message.event.type === 'content_block_delta',
  );
  expect(deltas).toHaveLength(5);
  expect(result).toMatchObject({ result: '0123456789 🙂🙂' });
});

test('a delayed answer keeps the session waiting', async () => {
  const { model, say } = conversation();
  model.on('slowly').reply(text('There.').delay(400));

  const startedAt = performance.now();
  const { result } = await say('slowly');

  expect(result).toMatchObject({ result: 'There.' });
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(399);
});

test('a reply can name another model', async () => {
  const { model, say } = conversation();
  model.on('who are you').reply(text('Another.').model('claude-named-otherwise'));

  const { messages } = await say('who are you');

  const answer = messages.find((message) => message.type === 'assistant');
  expect(answer?.message.model).toBe('claude-named-otherwise');
});
