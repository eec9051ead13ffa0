import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { gate, tool } from '../../src/scripted-model/reply.ts';
import { shareConversation, turnOf } from './cli-session.ts';

const conversation = shareConversation();

test('a background sub-agent follows its own script, and its notification goes to the first prompt', async () => {
  const { model, session, say } = conversation();
  const agentMayEnd = gate('The agent is done.');
  const main = model.on('delegate this').reply(
    tool('Agent', { description: 'a small task', prompt: 'look around', subagent_type: 'general-purpose' }),
    () => {
      agentMayEnd.release();
      return 'The agent works.';
    },
    'The agent reported.',
  );
  const agent = model.on('look around').reply(tool('Bash', { command: 'echo seen' }), agentMayEnd);

  expect((await say('delegate this')).result).toMatchObject({ result: 'The agent works.' });
  const { result } = await turnOf(session);

  expect(result).toMatchObject({ result: 'The agent reported.', origin: { kind: 'task-notification' } });
  const [first, second] = model.requestsFor(agent);
  expect(first?.agentId).toBeDefined();
  expect(second?.toolResults).toMatchObject([{ text: 'seen' }]);
  const notified = model.requestsFor(main)[2];
  expect(notified?.lastUserText).toMatch(/^<task-notification>[^]*The agent is done\./);
  model.assertAllExpected();
});

test('the notification of a background command can have its own script', async () => {
  const { model, home, session, say } = conversation();
  const command = `until [ -f ${home}/go ]; do sleep 0.1; done`;
  model.on('start it').reply(tool('Bash', { command, description: 'wait', run_in_background: true }), 'Started.');
  model.on(/<task-notification>[^]*"wait" completed/).reply('It ended.');

  expect((await say('start it')).result).toMatchObject({ result: 'Started.' });
  writeFileSync(`${home}/go`, '');
  const { result } = await turnOf(session);

  expect(result).toMatchObject({ result: 'It ended.', origin: { kind: 'task-notification' } });
  model.assertAllExpected();
});

// Models since 5 receive the prompt in a message with role system, older ones at the end of the tool result.
test('a prompt that arrives while a tool runs has its own script, whatever the model', async () => {
  const { model, session, prompts, say } = conversation();
  // The CLI sends this to a model when it switches to it.
  model.on('Hi').always('Hi.');
  for (const name of ['claude-opus-5-5', 'claude-sonnet-4-6']) {
    // The prompt in the transcript shows that the CLI has it; the brackets keep the command from finding itself there.
    const command = `until grep -rqs "second to ${name.slice(0, -1)}[${name.slice(-1)}]" $CLAUDE_CONFIG_DIR/projects; do sleep 0.1; done; echo finished`;
    model.on(`first to ${name}`).reply(tool('Bash', { command }));
    const second = model.on(`second to ${name}`).reply('Both heard.');
    await session.setModel(name);

    const { result } = await say(`first to ${name}`, (message) => {
      if (message.type === 'assistant' && message.message.content[0]?.type === 'tool_use')
        prompts.say(`second to ${name}`);
    });

    expect(result).toMatchObject({ result: 'Both heard.' });
    const [request] = model.requestsFor(second);
    expect(request).toMatchObject({ model: name, lastUserText: `second to ${name}` });
    expect(request?.toolResults).toMatchObject([{ text: 'finished' }]);
  }
});
