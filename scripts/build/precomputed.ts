import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Rolldown, type TsdownPlugin } from 'tsdown';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A value computed at build time: a module of the product, and the module whose export of the same name fills it. */
export interface Precomputed {
  readonly module: string;
  readonly exportName: string;
  readonly from: string;
}

/** Ships a value instead of the code that computes it, so that the server does not compute it at every start. */
export function precomputed(values: readonly Precomputed[]): TsdownPlugin {
  const byModule = new Map(values.map((value) => [path.join(root, value.module), value]));
  return {
    name: 'precomputed',
    async load(id) {
      const value = byModule.get(path.normalize(id));
      return value && `export const ${value.exportName} = ${JSON.stringify(await evaluate(value))};`;
    },
  };
}

async function evaluate({ from, exportName }: Precomputed): Promise<unknown> {
  const scratch = path.join(root, '.build');
  await mkdir(scratch, { recursive: true });
  // Inside the project, so that the packages it needs are found.
  const directory = await mkdtemp(path.join(scratch, 'precomputed-'));
  try {
    const file = path.join(directory, 'module.mjs');
    await Rolldown.build({
      input: path.join(root, from),
      platform: 'node',
      external: [/^@anthropic-ai\//, /^@modelcontextprotocol\//, /^zod/],
      transform: { target: 'node20' },
      logLevel: 'silent',
      output: { file, codeSplitting: false },
    });
    const exports = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
    return exports[exportName];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
