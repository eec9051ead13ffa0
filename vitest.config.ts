import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const globalSetup = 'test/harness/global-setup.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts'],
    pool: 'forks',
    // Each worker starts real Claude Code processes of about 200 MB.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 30_000,
    globalSetup: existsSync(globalSetup) ? [globalSetup] : [],
    reporters: ['default'],
  },
});
