/** The harness of an end-to-end test, cleaned up by vitest so that no test can forget to. */

import { afterAll, beforeAll, inject, onTestFailed, onTestFinished } from 'vitest';
import { openHarness, type Harness, type HarnessOptions } from './open-harness.ts';

/** Longer than a clean-up that has to kill processes. */
export const CLEAN_UP_TIMEOUT_MS = 40_000;

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await open(options);
  onTestFinished(() => harness.close(), CLEAN_UP_TIMEOUT_MS);
  showStderrOfFailure(harness);
  return harness;
}

/** Options that can be serialised, and thus compared. */
export type SharedOptions = Pick<HarnessOptions, 'env' | 'era' | 'git' | 'program' | 'settings' | 'toolset'>;

/** The servers that tests of this file share, by their options. */
const shared = new Map<string, Promise<Harness>>();

/** One per set of options, until `closeShared`. */
export async function sharedHarness(options: SharedOptions): Promise<Harness> {
  const key = JSON.stringify(options);
  const opening = shared.get(key) ?? open(options);
  shared.set(key, opening);
  const harness = await opening;
  showStderrOfFailure(harness);
  return harness;
}

export async function closeShared(): Promise<void> {
  const open = [...shared.values()];
  shared.clear();
  // One that failed to open has already failed its tests.
  await Promise.all(
    open.map((opening) =>
      opening.then(
        (harness) => harness.close(),
        () => undefined,
      ),
    ),
  );
}

/** One server for all tests of a block that do not depend on each other's effects. */
export function shareHarness(options: HarnessOptions = {}): () => Harness {
  let harness: Harness | undefined;
  beforeAll(async () => {
    harness = await open(options);
  });
  afterAll(() => harness?.close(), CLEAN_UP_TIMEOUT_MS);
  return () => {
    if (harness === undefined) throw new Error('The server was not started');
    return harness;
  };
}

function showStderrOfFailure(harness: Harness): void {
  onTestFailed(() => {
    const stderr = harness.server.stderr();
    if (stderr !== '') console.error(`stderr of the server:\n${stderr}`);
  });
}

async function open(options: HarnessOptions): Promise<Harness> {
  const buildFailure = inject('buildFailure');
  if (options.program === undefined && buildFailure !== undefined) throw new Error(`No build: ${buildFailure}`);
  return openHarness(options);
}
