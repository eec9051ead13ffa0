// Runs the demo and the fast tests with every Node that the package supports: `npm run nodes`, or `-- --others`
// for all but the one that runs this. npm's package `node` brings them; one that cannot be installed is skipped, with a line that says so.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const own = process.versions.node.split('.')[0];
const isWanted = (major) => major !== own || !process.argv.includes('--others');

for (const major of ['20', '22', '24', '26'].filter(isWanted)) {
  const node = major === own ? process.execPath : install(major);
  if (node === undefined) {
    console.log(`- Node ${major}: skipped, npm could not install it`);
    continue;
  }
  const began = performance.now();
  const problem = demoProblem(node) ?? testProblem(node);
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(
    problem === undefined ? `✓ Node ${version}: demo and fast tests, ${seconds} s` : `✗ Node ${version}: ${problem}`,
  );
  if (problem !== undefined) process.exitCode = 1;
}

function install(major) {
  const place = path.join(root, '.build', `node-${major}`);
  const node = path.join(place, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(node)) {
    mkdirSync(place, { recursive: true });
    const flags = ['--prefix', place, '--no-audit', '--no-fund', '--silent'];
    // It takes its binary from another package in a script of its own. On Windows npm is a script, too.
    spawnSync('npm', ['install', ...flags, `node@${major}`], { cwd: place, shell: process.platform === 'win32' });
  }
  return existsSync(node) ? node : undefined;
}

/** A warning of this Node is a problem, too: every user would see it. */
function demoProblem(node) {
  const { status, stdout, stderr } = run(node, 'dist/main.mjs', 'demo');
  if (status !== 0) return `the demo failed\n${stdout}\n${stderr}`;
  return stderr === '' ? undefined : `the demo wrote to stderr\n${stderr}`;
}

function testProblem(node) {
  const { status, stdout, stderr } = run(
    node,
    'node_modules/vitest/vitest.mjs',
    ...['run', '--config', 'vitest.fast.config.ts', '--reporter=dot'],
  );
  return status === 0 ? undefined : `the fast tests failed\n${stripVTControlCharacters(stdout + stderr).slice(-6_000)}`;
}

function run(node, ...args) {
  return spawnSync(node, args, { cwd: root, encoding: 'utf8', maxBuffer: 1e8 });
}
