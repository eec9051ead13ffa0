import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Rolldown, type TsdownPlugin } from 'tsdown';

const root = fileURLToPath(new URL('..', import.meta.url));
const MODULE = path.join(root, 'src', 'mcp', 'tool-listing.ts');

/**
 * Evaluates `src/mcp/tool-listing.ts` while building and puts its value in its place: a server that starts does not
 * make schemas and convert them, it has them.
 */
export function precomputedListing(): TsdownPlugin {
  let listing: Promise<string> | undefined;
  return {
    name: 'precomputed-listing',
    buildStart() {
      listing = undefined;
    },
    async load(id) {
      if (path.normalize(id) !== MODULE) return undefined;
      this.addWatchFile(MODULE);
      listing ??= evaluate();
      return `export const TOOL_LISTING = ${await listing};`;
    },
  };
}

async function evaluate(): Promise<string> {
  // Inside the project, so that the packages it needs are found.
  const directory = await mkdtemp(path.join(root, 'node_modules', '.tool-listing-'));
  try {
    const file = path.join(directory, 'tool-listing.mjs');
    await Rolldown.build({
      input: MODULE,
      platform: 'node',
      external: [/^@anthropic-ai\//, /^@modelcontextprotocol\//, /^zod/],
      logLevel: 'silent',
      output: { file, codeSplitting: false },
    });
    const { TOOL_LISTING } = (await import(pathToFileURL(file).href)) as { TOOL_LISTING: unknown };
    return JSON.stringify(TOOL_LISTING);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
