import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { reply, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { asks, COLOUR, EXTRAS, writesPlan } from './asked-of-people.ts';
import { claudePid } from './claude-process.ts';
import { verifies } from './requirements.ts';

const touch = (file: string) => tool('Bash', { command: `touch ${file}`, description: `make ${file}` });

verifies(
  [
    'request.plan',
    'request.plan-said',
    'request.plan-deny',
    'request.question-map',
    'request.question-inside-input',
    'request.question-not-approved',
    'request.question-list',
    'request.question-needs-answer',
  ],
  async (variant) => {
    const h = await variant.share();
    const script = h.model
      .on('build it')
      .reply(
        reply().text('First I make one thing.').tool('ExitPlanMode', {}),
        reply().text('Then this.').tool('ExitPlanMode', { plan: '# Plan 0\n\n1. Make another.' }),
        writesPlan('# Plan A\n\n1. Tear everything down.'),
        tool('ExitPlanMode'),
        writesPlan('# Plan B\n\n1. Make `built.txt`.'),
        tool('ExitPlanMode'),
        touch('built.txt'),
        text('as planned'),
      );
    const sessionId = await h.begin('build it', { permissionMode: 'plan', allowedTools: ['AskUserQuestion'] });
    const said = await h.nextRequest(sessionId);
    expect(said).toMatchObject({ type: 'plan_review', shown: 'First I make one thing.' });
    await h.deny(sessionId, { requestId: said.id, message: 'write it down' });

    const called = await h.nextRequest(sessionId);
    expect(called).toMatchObject({ type: 'plan_review', shown: '# Plan 0\n\n1. Make another.' });
    await h.deny(sessionId, { requestId: called.id, message: 'in the file' });

    const first = await h.nextRequest(sessionId);
    expect(first).toMatchObject({ type: 'plan_review', toolName: 'ExitPlanMode' });
    expect(first.shown).toBe('# Plan A\n\n1. Tear everything down.');
    await h.deny(sessionId, { requestId: first.id, message: 'keep what is there' });

    const second = await h.nextRequest(sessionId);
    expect(second).toMatchObject({ type: 'plan_review', shown: '# Plan B\n\n1. Make `built.txt`.' });
    expect(second.id).not.toBe(first.id);
    for (const [index, words] of [
      [1, 'write it down'],
      [2, 'in the file'],
      [4, 'keep what is there'],
    ] as const)
      expect(h.model.requestsFor(script)[index]?.toolResults[0]).toMatchObject({
        isError: true,
        text: expect.stringContaining(words),
      });
    await h.allow(sessionId, { requestId: second.id });

    // Outside plan mode, tools ask for permission as usual.
    expect(await h.nextRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Bash' });
    expect(existsSync(join(h.project, 'built.txt'))).toBe(false);
    await h.allow(sessionId);
    expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'as planned' });
    expect(existsSync(join(h.project, 'built.txt'))).toBe(true);
    await expectQuestions(h, sessionId);
  },
);

/** For a session with AskUserQuestion in allowedTools. */
async function expectQuestions(h: Harness, sessionId: string): Promise<void> {
  const first = h.model.on('ask me').reply(asks(COLOUR), text('thanks'));
  await h.say(sessionId, 'ask me');
  const { id, ...asked } = await h.nextRequest(sessionId);
  expect(asked).toMatchObject({ type: 'user_question', toolName: 'AskUserQuestion', shown: 'Which colour?' });
  expect(asked.input.questions).toMatchObject([
    { question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue' }] },
  ]);
  const events = async (): Promise<Json> => (await h.ok('claude_get_status', { sessionId })).toolUseEvents;
  if (h.toolset === 'explicit') expect(await events()).toMatchObject([{ status: 'awaiting_answer', inputId: id }]);
  await h.allow(sessionId, { requestId: id, answers: { 'Which colour?': 'Blue' } });
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'thanks' });
  if (h.toolset === 'explicit')
    expect(await events()).toMatchObject([{ status: 'completed', input: 'Which colour?', answer: 'Blue' }]);
  const [told] = h.model.requestsFor(first)[1]?.toolResults ?? [];
  expect(told?.text).toContain('"Which colour?"="Blue"');
  expect(told?.text).not.toContain('Red');

  const second = h.model.on('and more').reply(asks(COLOUR, EXTRAS), text('thanks again'));
  await h.say(sessionId, 'and more');
  const { id: again, input } = await h.nextRequest(sessionId);
  for (const answers of [['Blue'], ['Blue', 'Roof', 'more'], { 'Which size?': 'Large' }]) {
    const updatedInput = { questions: input.questions, answers };
    await h.fails(...h.dialect.allow(sessionId, again, { updatedInput }), 'INVALID_ARGUMENT');
  }
  const updatedInput = { questions: input.questions, answers: ['Blue', ['Wheels', 'Doors']] };
  await h.allow(sessionId, { requestId: again, updatedInput });
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'thanks again' });
  const [toldAgain] = h.model.requestsFor(second)[1]?.toolResults ?? [];
  expect(toldAgain?.text).toContain('"Which colour?"="Blue"');
  expect(toldAgain?.text).toContain('"Which extras?"="Wheels, Doors"');

  const third = h.model.on('and once more').reply(asks(COLOUR, EXTRAS), text('thanks for all'));
  await h.say(sessionId, 'and once more');
  const { id: last, shown } = await h.nextRequest(sessionId);
  expect(shown).toBe('Which colour? | Which extras?');
  const incomplete = [{}, [], ['Blue'], { 'Which colour?': 'Blue' }, { 'Which size?': 'Large' }];
  for (const allowance of [{}, ...incomplete.map((answers) => ({ answers }))]) {
    const message = await h.fails(...h.dialect.allow(sessionId, last, allowance), 'INVALID_ARGUMENT');
    expect(message).toMatch(/question|answer/i);
  }
  await h.allow(sessionId, { requestId: last, answers: ['a light green', ['Wheels', 'Doors']] });
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'thanks for all' });
  const [toldAtLast] = h.model.requestsFor(third)[1]?.toolResults ?? [];
  expect(toldAtLast?.text).toContain('"Which colour?"="a light green"');
  expect(toldAtLast?.text).toContain('"Which extras?"="Wheels, Doors"');
}

// Both toolsets handle the mode in the same way.
verifies('request.plan', { when: 'even if the process is restarted', toolsets: ['compact'] }, async (variant) => {
  const env = { CLAUDE_CODE_MCP_PARK_AFTER_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
  const h = await variant.start({ env });
  h.model.on('plan it').reply(reply().text('First I make one thing.').tool('ExitPlanMode', {}), text('planned'));
  h.model.on('now do it').reply(touch('made.txt'), text('did it'));
  const sessionId = await h.begin('plan it', { permissionMode: 'plan' });
  await h.allow(sessionId);
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'planned' });
  await eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the session is parked' });

  await h.say(sessionId, 'now do it');
  expect(await h.nextRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Bash' });
  await h.allow(sessionId);
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'did it' });
  expect(existsSync(join(h.project, 'made.txt'))).toBe(true);
});
