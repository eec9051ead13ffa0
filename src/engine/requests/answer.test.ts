import { expect, test } from 'vitest';
import { openRequest } from '../../../test/mcp/forms/open-request.ts';
import { DomainError } from '../../errors/errors.ts';
import { toDecision } from './answer.ts';
import type { Answer } from '../../schema/commands.ts';
import type { OpenRequest } from './requests.ts';

const command = openRequest('Bash', { command: 'ls' });
const questions = [{ question: 'Which colour?' }, { question: 'Which parts?', multiSelect: true }];
const question = openRequest('AskUserQuestion', { questions });

test.each<[string, OpenRequest, Answer, object]>([
  ['allow', command, { decision: 'allow' }, { behavior: 'allow' }],
  ['deny', command, { decision: 'deny' }, { behavior: 'deny', message: 'Permission denied by caller' }],
  [
    'deny with a message and an interrupt',
    command,
    { decision: 'deny', message: 'no', interrupt: true },
    { behavior: 'deny', message: 'no', interrupt: true },
  ],
  [
    'another input',
    command,
    { decision: 'allow', updatedInput: { command: 'pwd' } },
    { behavior: 'allow', updatedInput: { command: 'pwd' } },
  ],
  [
    'answers as a map, several labels as a list',
    question,
    { decision: 'allow', answers: { 'Which colour?': 'red', 'Which parts?': ['door', 'roof'] } },
    {
      behavior: 'allow',
      updatedInput: { questions, answers: { 'Which colour?': 'red', 'Which parts?': 'door, roof' } },
    },
  ],
  [
    'answers as a list',
    question,
    { decision: 'allow', answers: ['a text of my own', []] },
    {
      behavior: 'allow',
      updatedInput: { questions, answers: { 'Which colour?': 'a text of my own', 'Which parts?': '' } },
    },
  ],
  [
    'answers inside the input as a map',
    question,
    { decision: 'allow', updatedInput: { answers: { 'Which colour?': 'red', 'Which parts?': ['door', 'roof'] } } },
    {
      behavior: 'allow',
      updatedInput: { questions, answers: { 'Which colour?': 'red', 'Which parts?': 'door, roof' } },
    },
  ],
  [
    'answers inside the input as a list, with the questions echoed',
    question,
    { decision: 'allow', updatedInput: { questions, answers: ['red', ['door', 'roof']] } },
    {
      behavior: 'allow',
      updatedInput: { questions, answers: { 'Which colour?': 'red', 'Which parts?': 'door, roof' } },
    },
  ],
  [
    'questions echoed in another shape: Claude gets its own back',
    question,
    {
      decision: 'allow',
      answers: ['red', 'roof'],
      updatedInput: { questions: questions.map((one) => ({ question: one.question })), notes: 'kept' },
    },
    {
      behavior: 'allow',
      updatedInput: { questions, notes: 'kept', answers: { 'Which colour?': 'red', 'Which parts?': 'roof' } },
    },
  ],
  [
    'the same answers inside and outside',
    question,
    {
      decision: 'allow',
      answers: ['red', ['door', 'roof']],
      updatedInput: { answers: { 'Which parts?': 'door, roof', 'Which colour?': 'red' } },
    },
    {
      behavior: 'allow',
      updatedInput: { questions, answers: { 'Which colour?': 'red', 'Which parts?': 'door, roof' } },
    },
  ],
  ['a denied question', question, { decision: 'deny', message: 'later' }, { behavior: 'deny', message: 'later' }],
])('is translated: %s', (_what, request, answer, decision) => {
  expect(toDecision(request, answer, 'caller')).toEqual(decision);
});

test('a person who denies without a word is not called the caller', () => {
  expect(toDecision(command, { decision: 'deny' }, 'human')).toEqual({
    behavior: 'deny',
    message: 'Permission denied by a person',
  });
});

const inside = (answers: unknown): Answer => ({ decision: 'allow', updatedInput: { questions, answers } });

test.each<[string, OpenRequest, Answer, string]>([
  ['a bare allow of a question', question, { decision: 'allow' }, 'needs answers'],
  ['the questions without answers', question, { decision: 'allow', updatedInput: { questions } }, 'needs answers'],
  ['no answers', question, inside(null), 'needs answers'],
  ['too few answers', question, { decision: 'allow', answers: ['red'] }, '1 answer(s) for 2 question(s)'],
  ['too many answers', question, { decision: 'allow', answers: ['a', 'b', 'c'] }, '3 answer(s) for 2 question(s)'],
  ['too many answers inside', question, inside(['a', 'b', 'c']), '3 answer(s) for 2 question(s)'],
  ['a missing answer', question, { decision: 'allow', answers: { 'Which colour?': 'red' } }, 'No answer to'],
  ['a missing answer inside', question, inside({ 'Which colour?': 'red' }), 'No answer to: "Which parts?"'],
  [
    'another question',
    question,
    { decision: 'allow', answers: { 'Which colour?': 'a', 'Which parts?': 'b', x: 'c' } },
    'No such question: "x"',
  ],
  ['another question inside', question, inside({ x: 'c' }), 'No such question: "x"'],
  ['a string for all answers', question, inside('red'), 'answers must be'],
  ['an answer that is not text', question, inside(['red', 5]), 'must be a text or a list of labels'],
  ['a list that holds more than labels', question, inside(['red', ['door', {}]]), 'must be a text or a list of labels'],
  [
    'different answers inside and outside',
    question,
    { ...inside(['red', 'roof']), answers: ['blue', 'roof'] },
    'answers and updatedInput.answers differ',
  ],
  [
    'other questions',
    question,
    { decision: 'allow', answers: ['red', 'roof'], updatedInput: { questions: [{ question: 'May I?' }] } },
    'must be those asked',
  ],
  [
    'an empty input, for which Claude Code would run the original',
    command,
    { decision: 'allow', updatedInput: {} },
    'updatedInput is empty',
  ],
  [
    'answers to a request that is not a question',
    command,
    { decision: 'allow', answers: ['yes'] },
    'answers are only valid for questions',
  ],
])('%s is refused', (_what, request, answer, words) => {
  expect(() => toDecision(request, answer, 'caller')).toThrow(DomainError);
  expect(() => toDecision(request, answer, 'caller')).toThrow(words);
});

test.each<Partial<Answer>>([
  { updatedInput: { mode: 'patch' } },
  { updatedInput: { mode: 'merge' } },
  { always: true },
  { updatedPermissions: [{ type: 'setMode', mode: 'acceptEdits', destination: 'session' }] },
])('a request of the server’s own is allowed or denied as it is, not with %o', (more) => {
  const own: OpenRequest = {
    ...openRequest('Apply', { mode: 'merge' }),
    own: {
      opening: 'The caller wants to apply the work of a session.',
      backTo: 'rest',
      action: { action: 'apply', mode: 'merge', message: 'work', commit: 'c', onto: 'o' },
    },
  };
  expect(toDecision(own, { decision: 'allow', always: false }, 'caller')).toEqual({ behavior: 'allow' });
  expect(() => toDecision(own, { decision: 'allow', ...more }, 'caller')).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});
