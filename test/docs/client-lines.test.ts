import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CLIENTS, type InstallClient } from '../../src/cli/install/clients.ts';

const readme = readFileSync(fileURLToPath(new URL('../../README.md', import.meta.url)), 'utf8');
const clients: [string, InstallClient][] = Object.entries(CLIENTS);

/** The README's instructions for a client. */
function lineFor(title: string): string {
  return readme.split('\n').find((line) => line.startsWith(`| ${title} | `)) ?? '';
}

test.each(clients)('the README says how to add the server to %s, by hand and with install', (name, { title }) => {
  expect(lineFor(title)).toContain('claude-code-mcp');
  expect(readme).toContain(`\`${name}\``);
});

test.each(clients.filter(([, { title }]) => lineFor(title).includes(': `{')))(
  'the README’s entry for %s is recognised by install and uninstall',
  (_, { title, format }) => {
    const entry = /: `(\{.*\})` \|/.exec(lineFor(title))?.[1] ?? '';
    expect(format.owner(entry, 'claude-code')).toBe('us');
    expect(format.owner(format.remove(entry, 'claude-code', undefined) ?? '', 'claude-code')).toBe('nobody');
  },
);
