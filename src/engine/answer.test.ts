import { expect, test } from 'vitest';
import { openRequest } from '../../test/forms/open-request.ts';
import { DomainError } from '../errors/errors.ts';
import { toDecision, type Answer } from './answer.ts';
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
    'answers in the input, as Claude Code takes them',
    question,
    { decision: 'allow', updatedInput: { answers: { 'Which colour?': 'red' } } },
    { behavior: 'allow', updatedInput: { questions, answers: { 'Which colour?': 'red' } } },
  ],
  ['deny of a question', question, { decision: 'deny', message: 'later' }, { behavior: 'deny', message: 'later' }],
])('%s', (_what, request, answer, decision) => {
  expect(toDecision(request, answer)).toEqual(decision);
});

test.each<[string, OpenRequest, Answer]>([
  ['a bare allow of a question', question, { decision: 'allow' }],
  ['too few answers', question, { decision: 'allow', answers: ['red'] }],
  ['too many answers', question, { decision: 'allow', answers: ['a', 'b', 'c'] }],
  ['a missing answer', question, { decision: 'allow', answers: { 'Which colour?': 'red' } }],
  ['another question', question, { decision: 'allow', answers: { 'Which colour?': 'a', 'Which parts?': 'b', x: 'c' } }],
  ['answers to what is no question', command, { decision: 'allow', answers: ['yes'] }],
])('%s is refused', (_what, request, answer) => {
  expect(() => toDecision(request, answer)).toThrow(DomainError);
});
