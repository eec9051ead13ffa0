import { expect, test } from 'vitest';
import { ROLES, type Role } from '../../schema/enums.ts';
import { answersAsPerson, checkMayCommand, may, mayAnswer, mayWithAll, rolesThatMay, type Right } from './access.ts';

const RIGHTS: readonly Right[] = ['read', 'drive', 'stop', 'answer'];

/** What each role may do with its own sessions, and with those of others. */
test.each<[role: Role, own: Right[], others: Right[]]>([
  ['viewer', ['read'], ['read']],
  ['caller', ['read', 'drive', 'stop', 'answer'], []],
  ['approver', ['read', 'stop', 'answer'], ['read', 'stop', 'answer']],
  ['admin', ['read', 'drive', 'stop', 'answer'], ['read', 'drive', 'stop', 'answer']],
])('%s', (role, own, others) => {
  const principal = { id: 'me', role };
  expect(RIGHTS.filter((right) => may(principal, right, 'me'))).toEqual(own);
  expect(RIGHTS.filter((right) => may(principal, right, 'someone'))).toEqual(others);
  expect(RIGHTS.filter((right) => mayWithAll(principal, right))).toEqual(others);
  expect(RIGHTS.filter((right) => rolesThatMay(right).includes(role))).toEqual(own);
});

test('callers answer for their own sessions where the operator lets them, people always', () => {
  const answers = (role: Role, owner: string): string[] =>
    (['auto', 'caller', 'human'] as const).filter((mode) => mayAnswer({ id: 'me', role }, owner, mode));
  expect(answers('caller', 'me')).toEqual(['auto', 'caller']);
  expect(answers('caller', 'someone')).toEqual([]);
  expect(answers('viewer', 'me')).toEqual([]);
  for (const role of ['approver', 'admin'] as const)
    expect(answers(role, 'someone')).toEqual(['auto', 'caller', 'human']);
  expect(ROLES.filter((role) => answersAsPerson({ role }))).toEqual(['approver', 'admin']);
});

test('a refused command says which role may not do what', () => {
  const eve = { id: 'eve', name: 'Eve', kind: 'token', role: 'approver', attended: true } as const;
  expect(() => checkMayCommand(eve, 'start')).toThrow('Eve has the role approver, which may not start sessions.');
  expect(() => checkMayCommand(eve, 'apply', 'bob')).toThrow('which may not change sessions.');
  expect(() => checkMayCommand(eve, 'cancel', 'bob')).not.toThrow();
});
