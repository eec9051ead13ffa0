/** A home, a project and a scripted model for tests of the library, and a look at what is left afterwards. */

import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { startScriptedModel, type ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { killAll, survivors, TEST_MARKER, type MarkedProcess } from '../harness/marked-processes.ts';

export interface LibraryWorld {
  readonly place: IsolatedHome;
  readonly model: ScriptedModel;
  /** For the library, in place of this process's own. */
  readonly env: Record<string, string>;
  /** Processes that live on for longer than the product promises. */
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
