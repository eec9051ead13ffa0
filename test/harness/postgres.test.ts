import { expect, test } from 'vitest';
import { loadPackage } from './postgres.ts';

test.each(['beforeExit', 'exit'])('a run that has used a Postgres ends as its tests did (%s)', async (event) => {
  const before = process.rawListeners(event);
  await loadPackage();
  expect(process.rawListeners(event)).toEqual(before);
});
