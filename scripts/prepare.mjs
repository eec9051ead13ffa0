// Runs after `npm install` and `npm ci` have changed node_modules, in a checkout, in CI, and when npm installs the package from git.
// As the script `dependencies` of package.json: npm warns whoever installs a package that has a `prepare` script.
// Development tools (`--omit=dev`), .git and the sources may be missing: none of that must fail an install.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const isInstalled = (name) =>
  createRequire(import.meta.url)
    .resolve.paths(name)
    .some((dir) => existsSync(`${dir}/${name}`));

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

if (existsSync('.git') && !process.env.CI && isInstalled('husky')) {
  const { default: husky } = await import('husky');
  const complaint = husky();
  if (complaint) console.error(complaint);
}

if (isInstalled('tsdown') && existsSync('src/bin/main.ts')) {
  const { buildIfStale } = await import('./build-if-stale.mjs');
  await buildIfStale('dist');
}
