import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const globalSetup = ['test/harness/global-setup.ts', 'test/harness/shared-postgres.ts'];

/**
 * Which files come first. Starting a process gets slower as the worker's memory grows, and the tests of worktrees and
 * processes start thousands; a long file that began last would run on alone.
 */
const FIRST = [
  /[/\\](?:workspace|platform)[/\\]/,
  /[/\\](?:fleet|browser)[/\\]|[/\\](?:demo|scripts|soak)\./,
  /[/\\]e2e[/\\]/,
  /[/\\]hub[/\\]/,
];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = FIRST.findIndex((pattern) => pattern.test(moduleId));
      return found === -1 ? FIRST.length : found;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts', 'dashboard/**/*.test.ts'],
    pool: 'forks',
    // To load everything anew for each file costs more than a third of a second; no test keeps state in a module.
    isolate: false,
    // Each worker starts real Claude Code processes of about 200 MB. Much of a test is waiting, so that five workers
    // keep two cores busy; more would starve each other.
    maxWorkers: 5,
    sequence: { sequencer: SlowFirst },
    // For what hangs. On a busy machine a start of Claude Code alone may take half a minute.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    globalSetup: globalSetup.filter((file) => existsSync(file)),
    reporters: ['default'],
  },
});
