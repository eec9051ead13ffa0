import { defineConfig } from 'vitest/config';
import everything from './vitest.config.ts';

// The pure parts: no build, no database, no process.
export default defineConfig({
  test: {
    ...everything.test,
    include: ['{src,dashboard}/**/*.test.ts', 'test/{config,driver,engine,mcp/forms}/**/*.test.ts'],
    globalSetup: [],
  },
});
