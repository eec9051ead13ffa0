/** A home, a project and a scripted model for tests of the library, and a check for surviving processes. */

import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { startScriptedModel, type ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { killAll, survivors, TEST_MARKER, type MarkedProcess } from '../harness/marked-processes.ts';

export interface LibraryWorld {
  readonly place: IsolatedHome;
  readonly model: ScriptedModel;
  /** Environment for the library, instead of this process's own. */
  readonly env: Record<string, string>;
  /** Processes that outlive the grace period. */
  survivors(): Promise<MarkedProcess[]>;
}

const GRACE_MS = 5_000;

export async function createWorld(): Promise<LibraryWorld> {
  const marker = randomUUID();
  const place = await createHome();
  const model = await startScriptedModel();
  onTestFinished(async () => {
    await killAll(marker);
    await model.close();
    await place.remove();
  });
  return {
    place,
    model,
    env: { ...place.env(), ...model.env(), [TEST_MARKER]: marker },
    survivors: () => survivors(marker, GRACE_MS),
  };
}
