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

/** How long a walk may get. */
const MOST_ROOMS: Readonly<Record<string, number>> = {
  start: 20,
  'permission, to the person': 10,
  'answer through another hub': 16,
  apply: 14,
};

test('each walk through the rooms is as long as it says and no longer than it may be, and follows imports', () => {
  const [, table = ''] = /^## Rooms on the way\n([^#]*)/m.exec(read('docs/architecture.md')) ?? [];
  const walks = [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \| (\d+) \|$/gm)].map(([, walk = '', rooms = '', count]) => {
    return { walk, rooms: rooms.replace('then there: ', '').split(', '), count: Number(count) };
  });
  expect(walks.map(({ walk }) => walk)).toEqual(Object.keys(MOST_ROOMS));
  const passages = passagesBetween(new Set(walks.flatMap(({ rooms }) => rooms)));
  for (const { walk, rooms, count } of walks) {
    expect(rooms, walk).toHaveLength(count);
    expect(count, walk).toBeLessThanOrEqual(MOST_ROOMS[walk] ?? 0);
    const tooOften = rooms.filter((room) => rooms.filter((other) => other === room).length > 2);
    expect(tooOften, walk).toEqual([]);
    const walls = rooms.slice(1).filter((room, index) => {
      const before = rooms[index] ?? '';
      return room !== before && !passages.has(`${before} ${room}`) && !passages.has(`${room} ${before}`);
    });
    expect(walls, walk).toEqual([]);
  }
});

/** Pairs of rooms of which a file of the first imports one of the second: it calls it, or is called back by it. */
function passagesBetween(rooms: ReadonlySet<string>): ReadonlySet<string> {
  const src = path.join(root, 'src');
  const roomOf = (file: string): string | undefined => {
    const parts = path.relative(src, path.dirname(file)).split(path.sep);
    const rising = parts.map((_, index) => parts.slice(0, parts.length - index).join('/'));
    return rising.find((room) => rooms.has(room));
  };
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => /(?<!\.test)\.ts$/.test(name));
  return new Set(
    files.flatMap((name) => {
      const file = path.join(src, name);
      const targets = [...readFileSync(file, 'utf8').matchAll(/from '(\.[^']+)'/g)].map(([, target = '']) => target);
      return targets.map((target) => `${roomOf(file) ?? ''} ${roomOf(path.join(path.dirname(file), target)) ?? ''}`);
    }),
  );
}

test.each(['A prompt', 'A permission'])('the walkthrough "%s" has at most a dozen stops, none twice', (heading) => {
  const [, walk = ''] = new RegExp(`^## ${heading},.*\\n([^#]*)`, 'm').exec(read('docs/architecture.md')) ?? [];
  const places = [...walk.matchAll(/^\d+\. `(src\/[\w./-]+)`/gm)].map(([, file = '']) => file);
  expect(places.length).toBeGreaterThan(5);
  expect(places.length).toBeLessThanOrEqual(12);
  expect(new Set(places).size).toBe(places.length);
});
