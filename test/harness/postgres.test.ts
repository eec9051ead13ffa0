import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadPackage } from './postgres.ts';

/** A piece of the listeners that the package's dependency adds. */
const HOOK = 'eventFilters';

test.each(['beforeExit', 'exit'])('a run that has used a Postgres ends as its tests did (%s)', async (event) => {
  const fromHere = createRequire(fileURLToPath(import.meta.url));
  expect(readFileSync(fromHere.resolve('async-exit-hook'), 'utf8')).toContain(HOOK);
  await loadPackage();
  expect(process.rawListeners(event).map(String)).not.toContainEqual(expect.stringContaining(HOOK));
});
