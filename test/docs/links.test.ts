import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(path.join(root, 'docs')).map((name) => path.join('docs', name)),
  path.join('plugin', 'README.md'),
].filter((name) => name.endsWith('.md'));

const read = (page: string): string => readFileSync(path.join(root, page), 'utf8');

/** The anchors GitHub generates for headings. */
function anchors(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(pages)('the links in %s resolve', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, target = '']) => target);
  for (const link of links) {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : path.join(path.dirname(page), file);
    expect(existsSync(path.join(root, target)), link).toBe(true);
    if (anchor !== undefined) expect(anchors(target), link).toContain(anchor);
  }
});

test.each(pages)('%s does not point to the unrelated npm package of the same name', (page) => {
  expect(read(page)).not.toMatch(/npx (-y |--yes )?claude-code-mcp|npm (i|install)( -g)? claude-code-mcp/);
});

test('the README takes five minutes to read, and names the package as npm does', () => {
  const readme = read('README.md');
  expect(readme.split(/\s+/).length).toBeLessThanOrEqual(1500);
  const { name } = JSON.parse(read('package.json')) as { name: string };
  expect(readme).toContain(`npm uninstall -g ${name}`);
});

/** Whoever sets a variable of that name would believe in a rule that does not exist. */
test.each(pages.filter((page) => !/docs\/(reference|architecture|decisions|settings)/.test(page)))(
  '%s says that settings are named without their prefix, if it does so',
  (page) => {
    const text = read(page);
    if (/`(APPROVALS|ALLOWED_DIRS|DENY_OPTIONS|SANDBOX|ALLOW_BYPASS|MAX_SESSIONS)[=`]/.test(text))
      expect(text).toContain('`CLAUDE_CODE_MCP_APPROVALS');
  },
);

test('a figure that stands in two documents is the same in both', () => {
  const sessionMb = /Each live session takes about\s+(\d+) MB of memory/.exec(read('README.md'))?.[1];
  expect(read('docs/fleet.md')).toContain(`| a live Claude Code process | about ${sessionMb} MB resident |`);
});

test.each(['AGENTS.md', 'docs/architecture.md', 'docs/decisions.md', 'docs/store.md'])(
  'every src file that %s names exists',
  (page) => {
    const named = [...read(page).matchAll(/`(src\/[\w./-]+)`/g)].map(([, file = '']) => file);
    expect(named).not.toEqual([]);
    expect(named.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  },
);

test('the architecture has a row for every folder of src, AGENTS.md a place in the order of imports', () => {
  const folders = readdirSync(path.join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const rows = read('docs/architecture.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split(' | ')[0]);
  const [, order = ''] = /^(schema, errors.* ← .*)$/m.exec(read('AGENTS.md')) ?? [];
  for (const { name } of folders) {
    expect(
      rows.some((row) => row?.includes(`\`src/${name}\``)),
      name,
    ).toBe(true);
    if (name !== 'scripted-model') expect(order.split(/, | ← /), name).toContain(name);
  }
});

test('the rooms of each walk exist, and are counted', () => {
  const [, table = ''] = /^## Rooms on the way\n([^#]*)/m.exec(read('docs/architecture.md')) ?? [];
  const walks = [...table.matchAll(/^\| [^|]+ \| ([^|]+) \| (\d+) \|$/gm)];
  expect(walks).toHaveLength(4);
  for (const [, rooms = '', count] of walks) {
    const names = rooms.replace('then there: ', '').split(', ');
    expect(names.filter((name) => !existsSync(path.join(root, 'src', name)))).toEqual([]);
    expect(names).toHaveLength(Number(count));
  }
});

test.each(['A prompt', 'A permission'])('the walkthrough "%s" has at most a dozen stops, none twice', (heading) => {
  const [, walk = ''] = new RegExp(`^## ${heading},.*\\n([^#]*)`, 'm').exec(read('docs/architecture.md')) ?? [];
  const places = [...walk.matchAll(/^\d+\. `(src\/[\w./-]+)`/gm)].map(([, file = '']) => file);
  expect(places.length).toBeGreaterThan(5);
  expect(places.length).toBeLessThanOrEqual(12);
  expect(new Set(places).size).toBe(places.length);
});
