import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createHome } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The package that npm would create from the current build. */
async function packed(): Promise<Json> {
  // npm writes its log to the home directory.
  const place = await createHome();
  // On Windows npm is a script.
  const options = { cwd: root, env: place.env(), shell: process.platform === 'win32' };
  const { stdout } = await promisify(execFile)(
    'npm',
    ['pack', '--dry-run', '--json', '--ignore-scripts'],
    options,
  ).finally(() => place.remove());
  return JSON.parse(stdout)[0];
}

const { files, size } = await packed();
const names: string[] = files.map((file: Json) => file.path);
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

function importsOf(name: string): string[] {
  const found = read(name).matchAll(/^(?:import|export)\b.*? from "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm);
  return [...found].map(([, fixed, lazy]) => path.posix.join(path.posix.dirname(name), fixed ?? lazy ?? ''));
}

test('the package contains its programs and documents, and nothing else', () => {
  const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'SECURITY.md', 'CODE_OF_CONDUCT.md'];
  expect(names).toEqual(expect.arrayContaining([...documents, 'dist/main.mjs', 'dist/index.mjs', 'dist/index.d.mts']));
  const shown =
    /^([A-Z_]+\.md|docs\/[\w.-]+|examples\/[\w-]+\.(mjs|py)|packaging\/[\w.-]+|(plugin\/)?\.claude-plugin\/\w+\.json|plugin\/README\.md|bench\/results\.json)$/;
  const others = names.filter((name) => !documents.includes(name) && !shown.test(name));
  const programs = /^dist\/([\w./-]+\.m?js|index\.d\.mts|[\w-]+\.txt)$/;
  const page =
    /^dist\/dashboard\/(index\.html|icon\.svg|[\w-]+\.png|manifest\.webmanifest|style-[\w-]+\.css|third-party-notices\.txt)$/;
  expect(others.filter((name) => !programs.test(name) && !page.test(name))).toEqual([]);
  expect(names).toContain('dist/dashboard/index.html');
  expect(size).toBeLessThan(2_000_000);
});

test.each(names.filter((name) => name.endsWith('.md')))('the links in %s work in the package', (page) => {
  const links = [...read(page).matchAll(/(?:\]\(|src=")(?!https?:|mailto:|#)([^)"\s#]+)/g)].map(([, target = '']) =>
    path.posix.join(path.posix.dirname(page), target),
  );
  // A link to a directory leads to what is in it.
  expect(links.filter((link) => !names.some((name) => name === link || name.startsWith(`${link}/`)))).toEqual([]);
});

test('the command can be started and finds every file it imports', () => {
  expect(read('dist/main.mjs')).toMatch(/^#!\/usr\/bin\/env node\n/);
  expect(files.find((file: Json) => file.path === 'dist/main.mjs').mode & 0o111).toBe(0o111);
  const imported = names.filter((name) => name.endsWith('.mjs')).flatMap(importsOf);
  expect(imported.length).toBeGreaterThan(0);
  expect(imported.filter((name) => !names.includes(name))).toEqual([]);
});

test('the package reveals nothing about the machine it was built on', () => {
  const revealing = names.filter((name) => read(name).includes(root.replace(/[\\/]$/, '')));
  expect(revealing).toEqual([]);
});

test('the SBOM lists what is installed and what is bundled, each with a licence, and no tool of development', async () => {
  const { env, remove } = await createHome();
  const sbom = [path.join(root, 'scripts', 'sbom.mjs')];
  await promisify(execFile)(process.execPath, sbom, { env: env() }).finally(remove);
  const { components, metadata }: Json = JSON.parse(read('.build/sbom.cdx.json'));
  const names: string[] = components.map(({ name }: Json) => name);
  expect(names).toEqual(expect.arrayContaining(['@anthropic-ai/claude-agent-sdk', 'pg', 'libsql', 'zod', 'preact']));
  expect(names.filter((name) => ['vitest', 'eslint', 'tsdown', 'playwright-core'].includes(name))).toEqual([]);
  expect(metadata.component.name).toBe(JSON.parse(read('package.json')).name);
  const licenceOf = ({ licenses: [{ license, expression }] = [{}] }: Json): unknown => license?.id ?? expression;
  const free = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'Unlicense'];
  const others: string[] = components
    .filter((component: Json) => !free.includes(String(licenceOf(component))))
    .map(({ name }: Json) => name);
  // To these Anthropic's own terms apply.
  expect(others.filter((name) => !name.startsWith('@anthropic-ai/claude-agent-sdk'))).toEqual([]);
});
