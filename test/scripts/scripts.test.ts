/** Builds and runs every script with `--check`, which does its work on a small scale. */

import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

/** Run by the build, and by the test of the demo shown in the screenshots. */
const RUN_ELSEWHERE = ['third-party-notices', 'screenshots'];

const scripts = readdirSync(path.join(root, 'scripts'))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
  .filter((name) => !RUN_ELSEWHERE.includes(name));

test.each(scripts)('%s --check', { timeout: 120_000 }, async (name) => {
  const run = path.join(root, 'scripts', 'run.mjs');
  const { stderr } = await promisify(execFile)(process.execPath, ['--expose-gc', run, name, '--check'], { cwd: root });
  expect(stderr).not.toMatch(/Error:/);
});
