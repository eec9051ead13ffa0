/** Builds what the end-to-end tests run, once before all of them. */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Only tests that start the built server fail when there is none. */
    buildFailure: string | undefined;
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url));

export function setup(project: TestProject): void {
  project.provide('buildFailure', build());
}

function build(): string | undefined {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/build-if-stale.mjs'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  return status === 0 ? undefined : stderr;
}
