// Writes .build/sbom.cdx.json, what the package consists of: what npm installs with it, and what is bundled into it. npm alone
// would leave out the latter, which are development dependencies. `npm run build` comes first.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

// Not with `--omit dev`, which also omits what a development dependency needs as well. On Windows npm is a script.
const listing = spawnSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], {
  encoding: 'utf8',
  maxBuffer: 1e8,
  shell: process.platform === 'win32',
});
const { name } = JSON.parse(readFileSync('package.json', 'utf8'));
const everything = JSON.parse(listing.stdout);
const bundled = new Set(
  ['dist/third-party-notices.txt', 'dist/dashboard/third-party-notices.txt'].flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^(\S+) (\S+) \([\w.-]+\)$/gm)].map(
      ([, library, version]) => `${library}@${version}`,
    ),
  ),
);

const isDevelopment = ({ properties }) =>
  properties.some((property) => property.name === 'cdx:npm:package:development' && property.value === 'true');
const components = everything.components.filter(
  (component) => !isDevelopment(component) || bundled.has(component['bom-ref']),
);
const missing = [...bundled].filter((ref) => !components.some((component) => component['bom-ref'] === ref));
if (missing.length > 0) throw new Error(`bundled, but not in the lockfile: ${missing.join(', ')}`);

const refs = new Set(components.map((component) => component['bom-ref']));
const dependencies = everything.dependencies
  .filter(({ ref }) => refs.has(ref) || ref === everything.metadata.component['bom-ref'])
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
// npm calls it by the name of the directory.
everything.metadata.component.name = name;
mkdirSync('.build', { recursive: true });
writeFileSync('.build/sbom.cdx.json', `${JSON.stringify({ ...everything, components, dependencies }, null, 2)}\n`);
console.log(`.build/sbom.cdx.json: ${components.length} components, ${bundled.size} of them bundled`);
