import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const globalSetup = ['test/harness/global-setup.ts', 'test/harness/shared-postgres.ts'];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts', 'dashboard/**/*.test.ts'],
    pool: 'forks',
    // To load everything anew for each file costs more than a third of a second; no test keeps state in a module.
    isolate: false,
    // Each worker starts real Claude Code processes of about 200 MB. Much of a test is waiting, so that four workers
    // keep two cores busy; more would starve each other.
    maxWorkers: 4,
    testTimeout: 60_000,
    hookTimeout: 30_000,
    // On a shared machine a real process or browser can be starved for seconds. Locally nothing gets a second try.
    retry: process.env['CI'] === undefined ? 0 : 1,
    globalSetup: globalSetup.filter((file) => existsSync(file)),
    reporters: ['default'],
  },
});
