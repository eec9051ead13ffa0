import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CLIENTS, type InstallClient } from '../../src/cli/install/clients.ts';

const root = path.resolve(import.meta.dirname, '../..');
const read = (page: string): string => readFileSync(path.join(root, page), 'utf8');
const page = read('docs/clients.md');
const clients: [string, InstallClient][] = Object.entries(CLIENTS);

/** The instructions for a client. */
function lineFor(title: string): string {
  return page.split('\n').find((line) => line.startsWith(`| ${title} | `)) ?? '';
}

test.each(clients)('the docs say how to add the server to %s, by hand and with install', (name, { title }) => {
  expect(lineFor(title)).toContain('claude-code-mcp');
  expect(page).toContain(`\`${name}\``);
  expect(read('README.md')).toContain(`\`${name}\``);
});

test.each(clients.filter(([, { title }]) => lineFor(title).includes(': `{')))(
  'the entry for %s in the docs is recognised by install and uninstall',
  (_, { title, format }) => {
    const entry = /: `(\{.*\})` \|/.exec(lineFor(title))?.[1] ?? '';
    expect(format.owner(entry, 'claude-code')).toBe('us');
    expect(format.owner(format.remove(entry, 'claude-code', undefined) ?? '', 'claude-code')).toBe('nobody');
  },
);

test('the Codex configuration in the docs is recognised too', () => {
  const [, toml = ''] = /```toml\n([^]*?)```/.exec(page) ?? [];
  expect(CLIENTS.codex.format.commands(toml).get('claude-code')).toEqual(['claude-code-mcp', '--approvals', 'human']);
});

test.each(clients)('%s is called tested exactly if a complete task was driven through it', (_, { title }) => {
  const driven = new RegExp(`^\\| ${title}( \\(.*\\))? \\| [\\d.]+ \\| yes`, 'm').test(read('docs/interop.md'));
  expect(lineFor(title)).toMatch(driven ? /\| yes(, .*)? \|$/ : /\| not tested \|$/);
  const [, untested = ''] = /Not tested: ([^;]*);/.exec(read('README.md')) ?? [];
  expect(
    untested
      .split(/, |\n/)
      .map((name) => name.trim())
      .includes(title),
  ).toBe(!driven);
});
