import { expect, test } from 'vitest';
import type { StoredToken } from '../../schema/store.ts';
import { PrincipalNames } from './routes.ts';

test('a principal with a token is shown by the token’s name, any other by its id', async () => {
  const names = new PrincipalNames({
    token: (id) => Promise.resolve(id === 't_1' ? ({ name: 'ci' } as StoredToken) : undefined),
  });
  expect(await Promise.all(['token:t_1', 't_1', 'local', 'oauth:somebody'].map((id) => names.of(id)))).toEqual([
    'ci',
    'ci',
    'local',
    'oauth:somebody',
  ]);
});

test.each(['local', ' Local', 'this user', 'person', 'oauth:https://issuer|anna', 'token:t_2', 'ｌｏｃａｌ'])(
  'a token named %j is shown by its id',
  async (name) => {
    const names = new PrincipalNames({ token: (id) => Promise.resolve({ id, name } as StoredToken) });
    expect(await names.of('token:t_1')).toBe('token:t_1');
  },
);

test('a subject that has the id of a token as its name is not shown as that token', async () => {
  const names = new PrincipalNames({ token: () => Promise.resolve({ id: 't_1', name: 'ci' } as StoredToken) });
  for (const id of ['oauth:t_1', 'oauth:https://issuer|t_1', 'nested:t_1']) expect(await names.of(id)).toBe(id);
});
