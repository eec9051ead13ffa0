/** Builds what the end-to-end tests run, once for all of them. */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Fails only the tests that start the built server. */
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
