import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { SETTING_KEYS, variableOf } from '../../src/config/settings-table.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';
import type { Json } from '../harness/json.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function read(file: string): Json {
  return JSON.parse(readFileSync(path.join(root, file), 'utf8'));
}

const { version } = read('package.json');
const bundle = read('packaging/mcpb-manifest.json');

test.each(['package-lock.json', 'server.json', 'packaging/mcpb-manifest.json', 'plugin/.claude-plugin/plugin.json'])(
  '%s has the package’s version',
  (file) => expect(read(file).version).toBe(version),
);

test('the latest version in the changelog is the package’s', () => {
  const changelog = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8');
  expect(/^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$/m.exec(changelog)?.[1]).toBe(version);
});

test.each(['ci.yml', 'publish.yml'])('%s is valid YAML, and every script that it runs exists', (file) => {
  const text = readFileSync(path.join(root, '.github', 'workflows', file), 'utf8');
  expect(Object.keys(parse(text).jobs)).not.toEqual([]);
  const { scripts } = read('package.json');
  const run = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
  expect(run).toContain('bundle');
  expect(run.filter((name) => !(name in scripts))).toEqual([]);
});

test('the bundle lists the existing tools', () => {
  const listed = bundle.tools.map(({ name, description }: Json) => [name, description]);
  expect(listed).toEqual(TOOLSETS.compact.map(({ name, title }) => [name, title]));
});

test('the bundle sets existing variables from values it asks for', () => {
  const { env } = bundle.server.mcp_config;
  for (const [name, value] of Object.entries<string>(env)) {
    expect(SETTING_KEYS.map(variableOf)).toContain(name);
    const asked = /^\$\{user_config\.(\w+)\}$/.exec(value)?.[1];
    expect(Object.keys(bundle.user_config)).toContain(asked);
  }
});

test('the bundle requires the same Node version as the package', () => {
  expect(bundle.compatibility.runtimes.node).toBe(read('package.json').engines.node);
});
