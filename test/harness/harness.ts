/** The harness of an end-to-end test: cleaned up by vitest, so that no test can forget it. */

import { afterAll, beforeAll, inject, onTestFailed, onTestFinished } from 'vitest';
import { openHarness, type Harness, type HarnessOptions } from './open-harness.ts';

/** Longer than what a clean-up takes when it has to kill. */
const CLEAN_UP_TIMEOUT_MS = 15_000;

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await open(options);
  onTestFinished(() => harness.close(), CLEAN_UP_TIMEOUT_MS);
  onTestFailed(() => {
    const stderr = harness.server.stderr();
    if (stderr !== '') console.error(`stderr of the server:\n${stderr}`);
  });
  return harness;
}

/** One server for all tests of the block, where none of them can tell what the others did. */
export function shareHarness(options: HarnessOptions = {}): () => Harness {
  let shared: Harness | undefined;
  beforeAll(async () => {
    shared = await open(options);
  });
  afterAll(() => shared?.close(), CLEAN_UP_TIMEOUT_MS);
  return () => {
    if (shared === undefined) throw new Error('The server was not started');
    return shared;
  };
}

async function open(options: HarnessOptions): Promise<Harness> {
  const buildFailure = inject('buildFailure');
  if (options.program === undefined && buildFailure !== undefined) throw new Error(`No build: ${buildFailure}`);
  return openHarness(options);
}
