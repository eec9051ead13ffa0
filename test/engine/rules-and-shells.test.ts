import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { simpleCommand } from '../../src/engine/rules/standing/words.ts';
import { RuleSet } from '../../src/engine/rules/standing/rule-set.ts';
import { OPEN_COMMANDS, type OpenCommand } from '../../src/engine/rules/standing/prefixes.ts';
import { SessionRules } from '../../src/engine/rules/standing/session-rules.ts';
import type { PermissionAsk } from '../../src/driver/permission-ask.ts';
import type { EventBody } from '../../src/schema/events.ts';
import { EXACT, EXACT_RULES, GIT_LOCAL, READING } from './rule-corpus.ts';

/*
 * What an allow rule says is compared with what real shells do: with nothing but stub programs to run, a command that a
 * rule matches must run the program that it names, once, with exactly those words, and do nothing else.
 */

const SHELLS = ['/bin/bash', '/bin/dash', '/bin/zsh'].filter((shell) => existsSync(shell));
const STUBS = [
  'npm',
  'make',
  'cargo',
  'go',
  'pytest',
  'git',
  'docker',
  'id',
  'evil',
  ...OPEN_COMMANDS.map(({ words }) => words[0]!),
];

let root: string;
let sandboxed: readonly string[] = [];

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'ccm-shells-')));
  await mkdir(join(root, 'bin'));
  await mkdir(join(root, 'app'));
  const stub = `#!/bin/sh\nprintf '%s\\0' "\${0##*/}" "$@" >> "$CALLS"\nprintf '\\n\\0' >> "$CALLS"\n`;
  for (const file of [...new Set(STUBS)].map((name) => join(root, 'bin', name)).concat(join(root, 'app', 'gradlew'))) {
    await writeFile(file, stub);
    await chmod(file, 0o755);
  }
  const bubblewrap = [
    'bwrap',
    '--ro-bind',
    '/',
    '/',
    '--dev',
    '/dev',
    '--bind',
    root,
    root,
    '--unshare-all',
    '--die-with-parent',
  ];
  const works = await promisify(execFile)(bubblewrap[0]!, [...bubblewrap.slice(1), 'true']).then(
    () => true,
    () => false,
  );
  sandboxed = works ? bubblewrap : [];
});

afterAll(() => rm(root, { recursive: true, force: true }));

/** The words of every program that the shell ran for each command, and the files that appeared meanwhile. */
async function run(shell: string, commands: readonly string[]): Promise<{ calls: string[][][]; made: string[] }> {
  const app = join(root, 'app');
  const before = new Set(await readdir(app));
  const work = await mkdtemp(join(root, 'run-'));
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const script = commands.map(
    (command, at) =>
      `CALLS=${work}/${at} PATH=${root}/bin ${shell} -c ${quoted(command)} < /dev/null > /dev/null 2>&1\n`,
  );
  await writeFile(join(work, 'script'), script.join(''));
  const [program, ...args] = [...sandboxed, '/bin/sh', join(work, 'script')];
  await promisify(execFile)(program, args, { cwd: app, env: { HOME: join(root, 'home') } }).catch(() => undefined);
  const calls = await Promise.all(
    commands.map(async (_command, at) => {
      const told = await readFile(join(work, String(at)), 'utf8').catch(() => '');
      const lines = told.split('\n\0').filter((call) => call !== '');
      return lines.map((call) => call.split('\0').slice(0, -1));
    }),
  );
  return { calls, made: (await readdir(app)).filter((name) => !before.has(name)) };
}

function rulesFor(matches: readonly string[]): RuleSet {
  return new RuleSet(
    matches.map((match, at) => ({
      ...{ id: String(at), decision: 'allow' as const, tool: 'Bash', match },
      ...{ createdBy: 'person', createdAt: 0, enabled: true, uses: 0 },
    })),
  );
}

/** Every command of the table, and exact ones. */
const RULES = rulesFor([...EXACT_RULES, ...OPEN_COMMANDS.map(({ words }) => `${words.join(' ')} *`)]);

function isAllowed(command: string): boolean {
  const app = join(root, 'app');
  const place = { owner: 'local', cwd: app, roots: [{ real: app, countsAs: app }], realPath: (file: string) => file };
  return RULES.decide({ toolName: 'Bash', input: { command } }, place, 0)?.decision === 'allow';
}

async function expectPlain(commands: readonly string[]): Promise<void> {
  const expected = commands.map((command) => {
    const [program = '', ...words] = simpleCommand(command) ?? [];
    return { command, calls: [[program.replace(/^.*\//, ''), ...words]] };
  });
  for (const shell of SHELLS) {
    const { calls, made } = await run(shell, commands);
    expect(calls.map((ran, at) => ({ command: commands[at], calls: ran }))).toEqual(expected);
    expect(made).toEqual([]);
  }
}

test.skipIf(process.platform === 'win32')(
  'what the rules allow runs one program with those words in every shell',
  async () => {
    const allowed = [...EXACT.harmless, ...READING.harmless, ...GIT_LOCAL.harmless].filter(isAllowed);
    expect(allowed.length).toBeGreaterThan(100);
    await expectPlain(allowed);
  },
);

/** Pieces that a shell reads in its own way, and plain ones. */
const PIECES = [
  ...[
    ' ',
    '  ',
    '\t',
    '\n',
    ';',
    '&',
    '&&',
    '|',
    '||',
    '>',
    '<',
    '>>',
    '<<',
    '(',
    ')',
    '{',
    '}',
    '{a,b}',
    '[',
    ']',
    '!',
    '#',
  ],
  ...[
    "'",
    '"',
    '\\',
    '`',
    '$',
    '$(id)',
    '`id`',
    '${x}',
    '$x',
    '*',
    '?',
    '~',
    '=',
    '%',
    '+',
    '-',
    '--',
    ',',
    ':',
    '.',
    '/',
    '@',
    '^',
  ],
  ...[
    '\r',
    '\v',
    '\u00a0',
    '\u2003',
    '\u0000',
    'é',
    '=id',
    'a=b',
    '~root',
    '<(id)',
    '&>',
    '2>',
    '!!',
    'id',
    'evil',
    ';id',
    '$IFS',
  ],
  ...['src', 'README.md', '-n', '-la', '-3', '--stat', '"a b"', "'a b'", "'$x'", "'*'", '"*"', "';'", "''", '""', 'x'],
];
const BASES = [...EXACT_RULES, ...READING.harmless, ...GIT_LOCAL.harmless];

test.skipIf(process.platform === 'win32')(
  'whatever is made of such commands, a rule matches only what a shell takes word by word',
  async () => {
    const changed = fc
      .tuple(
        fc.constantFrom(...BASES),
        fc.array(fc.tuple(fc.constantFrom(...PIECES), fc.double({ min: 0, max: 1, noNaN: true })), {
          minLength: 1,
          maxLength: 3,
        }),
      )
      .map(([base, pieces]) =>
        pieces.reduce((command, [piece, where]) => {
          const at = Math.floor(where * (command.length + 1));
          return command.slice(0, at) + piece + command.slice(at);
        }, base),
      );
    const commands = fc.sample(changed, 60_000).filter((command) => !command.includes('\0'));
    const allowed = [...new Set(commands.filter(isAllowed))];
    expect(allowed.length).toBeGreaterThan(200);
    expect(allowed.length).toBeLessThan(commands.length / 2);
    await expectPlain(allowed.slice(0, 200));
  },
);

test.skipIf(process.platform === 'win32')('the shells show what a rule would miss', async () => {
  for (const shell of SHELLS) {
    const { calls, made } = await run(shell, ['npm test && id', 'npm $(npm test)', 'npm test > out.txt', '"npm test"']);
    expect(calls).toEqual([[['npm', 'test'], ['id']], [['npm', 'test'], ['npm']], [['npm', 'test']], []]);
    expect(made).toEqual(['out.txt']);
    await rm(join(root, 'app', 'out.txt'));
  }
});

const SAMPLES = { text: 'x', path: 'a.txt', number: '2', size: '2k', format: '%h', 'ref order': 'refname' } as const;
/** What programs write or run with, if they take it for an option. */
const HARMFUL = ['-o', '--output=out', '-delete', '-fprint', '1o', 'o'];
const PATHS = (process.env['PATH'] ?? '').split(':');
const FILES = ['a.txt', 'b.txt', 'src', '.', 'HEAD', 'main'];

/** What is on disk, without the index, which git refreshes when it reads. */
async function everythingIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('index'));
  const read = files.map(async ({ parentPath, name }) => [
    join(parentPath, name),
    await readFile(join(parentPath, name), 'hex'),
  ]);
  return [
    ...entries.map((entry) => join(entry.parentPath, entry.name)),
    ...(await Promise.all(read)).map(String),
  ].sort();
}

test.skipIf(process.platform !== 'linux')(
  'whatever the table lists, the real programs change no file with it',
  async ({ skip }) => {
    if (sandboxed.length === 0) skip('bubblewrap is missing');
    const app = join(root, 'app');
    const clean = join(root, 'clean');
    await mkdir(join(clean, 'src'), { recursive: true });
    for (const file of ['a.txt', 'b.txt', 'src/c.txt']) await writeFile(join(clean, file), `${file}\nx\nx\n`);
    const git = (...args: string[]) =>
      promisify(execFile)('git', ['-c', 'user.name=x', '-c', 'user.email=x@y', ...args], { cwd: clean });
    await git('init', '--quiet', '--initial-branch', 'main');
    await git('add', '.');
    await git('commit', '--quiet', '--message', 'x');
    for (const program of new Set(OPEN_COMMANDS.map(({ words }) => words[0]!))) {
      if (!PATHS.some((directory) => existsSync(join(directory, program)))) continue;
      const allowed = OPEN_COMMANDS.filter(({ words }) => words[0] === program).flatMap(allowedBy);
      await rm(app, { recursive: true });
      await cp(clean, app, { recursive: true });
      const before = await everythingIn(app);
      const script = join(root, 'real');
      await writeFile(script, ['exec < /dev/null > /dev/null 2>&1', ...allowed, ''].join('\n'));
      const [runner, ...args] = [...sandboxed, '/bin/sh', script];
      await promisify(execFile)(runner, args, {
        cwd: app,
        env: { HOME: root, PATH: process.env['PATH'] },
        timeout: 60_000,
      }).catch(() => undefined);
      expect({ allowed, after: await everythingIn(app) }).toEqual({ allowed, after: before });
    }
  },
);

test.skipIf(process.platform === 'win32')(
  'a rule lets no git command run where git takes files of the session for its repository',
  async () => {
    const project = join(root, 'project');
    const sub = join(project, 'sub');
    const git = (cwd: string, ...args: string[]) =>
      promisify(execFile)('git', args, { cwd, env: { HOME: root, PATH: process.env['PATH'] } });
    await mkdir(sub, { recursive: true });
    await git(project, 'init', '--quiet');
    const set = rulesFor(['git status *', 'npm test']);
    const rules = { inForce: set, confirm: async () => true, used: () => undefined, subscribe: () => () => undefined };
    const session = (directory: string) => new SessionRules(rules, { owner: 'local', options: {}, directory }, () => 0);
    const ask = (input: { command: string }) => ({ toolName: 'Bash', input }) as unknown as PermissionAsk;
    const decides = async (where: SessionRules, command: string) =>
      (await where.verdict(ask({ command })))?.decision === 'allow';

    const moved = session(project);
    const ran = { kind: 'tool_call', toolName: 'Bash', input: { command: 'cd sub' } };
    expect(await decides(moved, 'git status')).toBe(true);
    moved.heard({ kind: 'message', blocks: [ran] } as unknown as EventBody);
    expect(await decides(moved, 'git status')).toBe(false);
    expect(await decides(moved, 'npm test')).toBe(true);

    const below = session(sub);
    expect(await decides(below, 'git status')).toBe(true);
    await mkdir(join(sub, 'objects'));
    await mkdir(join(sub, 'refs'));
    await writeFile(join(sub, 'HEAD'), 'ref: refs/heads/x\n');
    const settings = [
      'repositoryformatversion = 0',
      'bare = false',
      'worktree = ..',
      `fsmonitor = "touch ${root}/ran; false"`,
    ];
    await writeFile(join(sub, 'config'), ['[core]', ...settings, ''].join('\n'));
    await git(sub, 'status');
    expect(existsSync(join(root, 'ran'))).toBe(true);
    expect(await decides(below, 'git status')).toBe(false);
    expect(await decides(session(project), 'git status')).toBe(true);
  },
);

/** Commands made of what an entry of the table lists and of what it does not, as far as a rule allows them. */
function allowedBy({ words, flags = '', long = [], values = {}, attached = {} }: OpenCommand): string[] {
  const known = [
    ...Array.from(flags).map((letter) => `-${letter}`),
    ...long,
    ...Object.entries(values).flatMap(([name, kind]) => [name, SAMPLES[kind], `${name}${SAMPLES[kind]}`]),
    ...Object.entries(attached).map(([name, kind]) => `${name}=${SAMPLES[kind]}`),
  ];
  const glued = [...Object.keys(values), '-'].flatMap((name) => HARMFUL.map((piece) => name + piece));
  const first = ['--', ...HARMFUL, ...glued];
  const pairs = first.flatMap((word) => ['', ...HARMFUL].map((next) => [word, next, 'b.txt']));
  const others = fc.sample(fc.array(fc.constantFrom(...known, ...FILES), { minLength: 1, maxLength: 4 }), 5);
  const quoted = (text: string): string => (/^[\w./=-]+$/.test(text) ? text : `'${text}'`);
  const allowed = (lists: readonly (readonly string[])[]): string[] =>
    lists
      .map((args) => [...words, ...args.filter((word) => word !== '').map(quoted)].join(' '))
      .filter((command) => isAllowed(command));
  return [...new Set([...allowed(pairs), ...allowed(others)])];
}
