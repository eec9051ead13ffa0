import { expect, test } from 'vitest';
import type { StoredToken } from '../../schema/store.ts';
import { PrincipalNames } from './principal-names.ts';

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
