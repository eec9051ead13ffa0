/** TypeScript that a test runs as a process of its own, which Node 20 cannot do. */

import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const root = path.resolve(import.meta.dirname, '../..');

const BUILD = `
  import { build } from 'tsdown';
  const fixed = { format: 'esm', platform: 'node', target: 'node20', dts: false, clean: false, config: false, logLevel: 'silent' };
  await build({ ...JSON.parse(process.argv[1]), ...fixed });`;

/**
 * Returns the program. Bundled by another process: the bundler leaves 80 MB behind, and starting a process gets slower as
 * the worker's memory grows.
 */
export async function bundle(entry: string, outDir: string): Promise<string> {
  const name = path.basename(entry, '.ts');
  const options = {
    entry: { [name]: entry },
    outDir,
    deps: { neverBundle: ['@anthropic-ai/claude-agent-sdk', 'libsql', 'pg'] },
  };
  await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', BUILD, JSON.stringify(options)],
    // Where the bundler is found.
    { cwd: root },
  );
  return path.join(outDir, `${name}.mjs`);
}
