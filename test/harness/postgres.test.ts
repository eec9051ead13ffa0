import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadPackage } from './postgres.ts';

/** Part of the source of the listeners that the package's dependency adds. */
const HOOK = 'eventFilters';

test.each(['beforeExit', 'exit'])(
  'loading Postgres leaves no %s listener that would change the exit code',
  async (event) => {
    const fromHere = createRequire(fileURLToPath(import.meta.url));
    expect(readFileSync(fromHere.resolve('async-exit-hook'), 'utf8')).toContain(HOOK);
    await loadPackage();
    expect(process.rawListeners(event).map(String)).not.toContainEqual(expect.stringContaining(HOOK));
  },
);
