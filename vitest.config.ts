import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const globalSetup = ['test/harness/global-setup.ts', 'test/harness/shared-postgres.ts'];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts'],
    pool: 'forks',
    // Each worker starts real Claude Code processes of about 200 MB. Much of a test is waiting, so that three workers
    // keep two cores busy; more would starve each other.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 30_000,
    // On a shared machine a real process can be starved for seconds; what fails twice in a row is a defect.
    retry: process.env['CI'] === undefined ? 0 : 1,
    globalSetup: globalSetup.filter((file) => existsSync(file)),
    reporters: ['default'],
  },
});
