import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const globalSetup = ['test/harness/global-setup.ts', 'test/harness/shared-postgres.ts'];

/** Files that start processes come first: a long one that began last would run on alone. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean =>
      /[/\\]test[/\\](?:e2e|hub|browser)[/\\]/.test(moduleId);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts', 'dashboard/**/*.test.ts'],
    pool: 'forks',
    // To load everything anew for each file costs more than a third of a second; no test keeps state in a module.
    isolate: false,
    // Each worker starts real Claude Code processes of about 200 MB. Much of a test is waiting, so that four workers
    // keep two cores busy; more would starve each other.
    maxWorkers: 4,
    sequence: { sequencer: SlowFirst },
    // For what hangs. On a busy machine a start of Claude Code alone may take half a minute.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    globalSetup: globalSetup.filter((file) => existsSync(file)),
    reporters: ['default'],
  },
});
