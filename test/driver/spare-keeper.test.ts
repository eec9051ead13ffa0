import { expect, test } from 'vitest';
import { ProcessOwner } from '../../src/platform/process-owner.ts';
import { SpareKeeper } from '../../src/driver/driver.ts';

test('no spare is started while memory is short', async () => {
  let loaded = 0;
  const keeper = new SpareKeeper({
    loadSdk: () => {
      loaded++;
      return Promise.reject(new Error('not in this test'));
    },
    owner: new ProcessOwner({ stateDir: '/nowhere', warn: () => undefined }),
    template: { options: {}, env: {} },
    debug: () => undefined,
    freeMemory: () => 100_000_000,
  });
  expect(keeper.reserve({ options: { cwd: '/' }, env: {} })).toBeUndefined();
  await keeper.close();
  expect(loaded).toBe(0);
});
