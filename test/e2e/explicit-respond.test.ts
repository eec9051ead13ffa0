import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';

const PLAN_FILE = /\S+\/plans\/\S+?\.md/;

/** Claude writes its plan where the reminder of plan mode tells it to. */
function writesPlan(plan: string): (request: ModelRequest) => ReturnType<typeof tool> {
  return ({ reminders }) => {
    const [file] = PLAN_FILE.exec(reminders.join('\n')) ?? [];
    if (file === undefined) throw new Error('No reminder names a plan file');
    return tool('Write', { file_path: file, content: plan });
  };
}

test('a plan: denied it comes back changed, allowed it leaves plan mode and works', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const made = path.join(h.project, 'made.txt');
  const script = h.model
    .on('build it')
    .reply(
      writesPlan('# Plan A\n1. tear everything down'),
      tool('ExitPlanMode'),
      writesPlan('# Plan B\n1. build with care'),
      tool('ExitPlanMode'),
      tool('Write', { file_path: made, content: 'built' }),
      text('built'),
    );
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'build it', permissionMode: 'plan' });

  const first = await h.waitForRequest(sessionId);
  expect(first).toMatchObject({ type: 'plan_review', toolName: 'ExitPlanMode' });
  expect(first.description).toContain('Plan A');
  const denied = { sessionId, inputId: first.inputId, decision: 'deny', reason: 'keep what is there' };
  expect(await h.ok('claude_respond', denied)).toEqual({ sessionId, status: 'running' });

  const second = await h.waitForRequest(sessionId);
  expect(second).toMatchObject({ type: 'plan_review' });
  expect(second.description).toContain('Plan B');
  expect(second.inputId).not.toBe(first.inputId);
  expect(h.model.requestsFor(script)[2]?.toolResults[0]?.text).toContain('keep what is there');
  expect(existsSync(made)).toBe(false);
  await h.ok('claude_respond', { sessionId, inputId: second.inputId, decision: 'allow' });

  expect(await h.waitForRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Write' });
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'built' });
  expect(existsSync(made)).toBe(true);
});

test('plan mode that was left stays left when the process is started again', async () => {
  const parked = { CLAUDE_CODE_MCP_PARK_AFTER_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
  const h = await startHarness({ toolset: 'explicit', env: parked });
  h.model.on('build it').reply(text('My plan.').tool('ExitPlanMode'), text('planned'));
  const made = path.join(h.project, 'made.txt');
  h.model.on('now do it').reply(tool('Write', { file_path: made, content: 'x' }), text('did it'));
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'build it', permissionMode: 'plan' });
  const review = await h.waitForRequest(sessionId);
  expect(review).toMatchObject({ type: 'plan_review', description: 'My plan.' });
  await h.allow(sessionId);
  await h.waitUntilRest(sessionId);
  const isClaude = ({ command }: { command: string }): boolean => command.includes('stream-json');
  await eventually(async () => !(await h.processes()).some(isClaude), { what: 'the process is parked' });

  await h.ok('claude_send_message', { sessionId, message: 'now do it' });

  expect(await h.waitForRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Write' });
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'did it' });
  expect(existsSync(made)).toBe(true);
});

const questions = [
  {
    question: 'Which colour?',
    header: 'Colour',
    multiSelect: false,
    options: [
      { label: 'Red', description: 'warm' },
      { label: 'Blue', description: 'cold' },
    ],
  },
  {
    question: 'Which sizes?',
    header: 'Sizes',
    multiSelect: true,
    options: [
      { label: 'Small', description: 's' },
      { label: 'Large', description: 'l' },
    ],
  },
];

test.each([
  ['by question', { 'Which colour?': 'Blue', 'Which sizes?': ['Small', 'Large'] }],
  ['in order', ['Blue', ['Small', 'Large']]],
])('a question is answered %s', async (_how, answers) => {
  const h = await startHarness({ toolset: 'explicit' });
  const script = h.model.on('ask me').reply(tool('AskUserQuestion', { questions }), text('thanks'));
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'ask me' });
  const { inputId, ...asked } = await h.waitForRequest(sessionId);
  expect(asked).toMatchObject({
    type: 'user_question',
    toolName: 'AskUserQuestion',
    toolInput: { questions },
    description: 'Which colour? | Which sizes?',
  });

  const unanswered = await h.fails('claude_respond', { sessionId, inputId, decision: 'allow' }, 'INVALID_ARGUMENT');
  expect(unanswered).toContain('Which colour?');
  await h.ok('claude_respond', { sessionId, inputId, decision: 'allow', answers });

  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'thanks' });
  const heard = h.model.requestsFor(script)[1]?.toolResults[0]?.text;
  expect(heard).toContain('Blue');
  expect(heard).toContain('Small, Large');
});

test('a permission: another input is run, a reason is heard, and each is answered once', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const script = h.model
    .on('touch')
    .reply(
      tool('Bash', { command: 'touch first.txt', description: 'x' }),
      tool('Bash', { command: 'touch second.txt', description: 'x' }),
      text('done'),
    );
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'touch' });

  const first = await h.waitForRequest(sessionId);
  const changed = { command: 'touch other.txt', description: 'x' };
  await h.ok('claude_respond', { sessionId, inputId: first.inputId, decision: 'allow', updatedInput: changed });
  const again = { sessionId, inputId: first.inputId, decision: 'deny' };
  await h.fails('claude_respond', again, 'PERMISSION_REQUEST_NOT_FOUND');

  const second = await h.waitForRequest(sessionId);
  const both = { sessionId, inputId: second.inputId, decision: 'deny', updatedInput: changed };
  await h.fails('claude_respond', both, 'INVALID_ARGUMENT');
  await h.ok('claude_respond', { sessionId, inputId: second.inputId, decision: 'deny', reason: 'one is enough' });

  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'done' });
  const files = ['first.txt', 'other.txt', 'second.txt'].map((name) => existsSync(path.join(h.project, name)));
  expect(files).toEqual([false, true, false]);
  expect(h.model.requestsFor(script)[2]?.toolResults).toMatchObject([{ isError: true }]);
  expect(h.model.requestsFor(script)[2]?.toolResults[0]?.text).toContain('one is enough');
  await h.fails('claude_respond', { sessionId, inputId: 'nothing', decision: 'allow' }, 'PERMISSION_REQUEST_NOT_FOUND');
  const nobody = { sessionId: 'nobody', inputId: 'nothing', decision: 'allow' };
  await h.fails('claude_respond', nobody, 'SESSION_NOT_FOUND');
});
