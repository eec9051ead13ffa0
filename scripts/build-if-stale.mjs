// Builds an output only when something it is made from is newer, so that `npm test` costs no build when nothing changed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const build = fileURLToPath(new URL('build.mjs', import.meta.url));
const LOCK_STALE_MS = 60_000;

const shared = ['src', 'package.json', 'package-lock.json', 'tsconfig.json'];
const outputs = {
  dist: { file: 'dist/main.mjs', inputs: [...shared, 'dashboard', 'scripts/build', 'tsdown.config.ts'], args: [] },
  scripts: {
    file: '.build',
    inputs: [
      ...shared,
      'scripts',
      'test/harness',
      'test/browser',
      'test/fleet',
      'test/soak',
      'tsdown.scripts.config.ts',
    ],
    args: ['--config', 'tsdown.scripts.config.ts'],
  },
};

/** @param {keyof typeof outputs} name */
export async function buildIfStale(name) {
  const stamp = path.join(root, '.build', `${name}.stamp`);
  const isFresh = () =>
    existsSync(path.join(root, outputs[name].file)) &&
    outputs[name].inputs.every((input) => newest(path.join(root, input)) <= modifiedAt(stamp));
  if (isFresh()) return;
  await withLock(path.join(root, '.build', `${name}.lock`), () => {
    if (isFresh()) return;
    const startedAt = new Date();
    const { status } = spawnSync(process.execPath, [build, '--quiet', ...outputs[name].args], {
      cwd: root,
      // Programs read the output of commands that build first: all build output goes to stderr.
      stdio: ['ignore', 2, 2],
    });
    if (status !== 0) throw new Error(`the build of ${name} failed`);
    writeFileSync(stamp, '');
    // A source edited during the build is not in the output: the start of the build counts.
    utimesSync(stamp, startedAt, startedAt);
  });
}

// Directories count as well: removing a file changes nothing but its directory.
function newest(file) {
  const own = modifiedAt(file);
  if (own === 0 || !statSync(file).isDirectory()) return own;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), own);
}

function modifiedAt(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

// Two builds at once would write the same files.
async function withLock(lock, work) {
  mkdirSync(path.dirname(lock), { recursive: true });
  while (!tryLock(lock)) {
    if (Date.now() - modifiedAt(lock) > LOCK_STALE_MS) rmSync(lock, { recursive: true, force: true });
    else await sleep(100);
  }
  try {
    work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryLock(lock) {
  try {
    mkdirSync(lock);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  if (!existsSync(path.join(root, 'node_modules', 'tsdown')))
    throw new Error('tsdown is not installed: run `npm install` first');
  await buildIfStale('dist');
}
