// Packs what `dist` holds now and checks the tarball as others will see it: `npm run build` comes first.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { name, version } = JSON.parse(readFileSync('package.json', 'utf8'));
// What npm calls the file of a scoped package.
const tarball = path.join('.build', `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`);

mkdirSync('.build', { recursive: true });
// npm by its own path: on Windows `npm` is a script that cannot be started without a shell.
run(process.env.npm_execpath, 'pack', '--ignore-scripts', '--silent', '--pack-destination', '.build');
run('node_modules/publint/src/cli.js', 'run', tarball, '--strict');
// Without @types of other packages it asks no registry. The package has ES modules only, so nothing else is checked.
run(
  'node_modules/@arethetypeswrong/cli/dist/index.js',
  tarball,
  ...['--profile', 'esm-only', '--no-definitely-typed', '--no-summary', '--no-emoji', '--format', 'ascii'],
);

function run(program, ...args) {
  const { status } = spawnSync(process.execPath, [program, ...args], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
