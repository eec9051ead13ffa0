/** Bundles TypeScript that a test runs as a separate process, since Node 20 cannot run it directly. */

import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const root = path.resolve(import.meta.dirname, '../..');

const BUILD = `
  import { build } from 'tsdown';
  const fixed = { format: 'esm', platform: 'node', target: 'node20', dts: false, clean: false, config: false, logLevel: 'silent' };
  await build({ ...JSON.parse(process.argv[1]), ...fixed });`;

/**
 * Returns the program's path. Runs the bundler in a child process: it leaves 80 MB behind, and spawning gets slower as
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
    // So that the import finds the bundler.
    { cwd: root },
  );
  return path.join(outDir, `${name}.mjs`);
}
