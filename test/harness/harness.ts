/** The harness of an end-to-end test: cleaned up by vitest, so that no test can forget it. */

import { inject, onTestFailed, onTestFinished } from 'vitest';
import { openHarness, type Harness, type HarnessOptions } from './open-harness.ts';

/** Longer than what a clean-up takes when it has to kill. */
const CLEAN_UP_TIMEOUT_MS = 15_000;

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const buildFailure = inject('buildFailure');
  if (options.program === undefined && buildFailure !== undefined) throw new Error(`No build: ${buildFailure}`);
  const harness = await openHarness(options);
  onTestFinished(() => harness.close(), CLEAN_UP_TIMEOUT_MS);
  onTestFailed(() => {
    const stderr = harness.server.stderr();
    if (stderr !== '') console.error(`stderr of the server:\n${stderr}`);
  });
  return harness;
}
