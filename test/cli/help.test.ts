/** What every command has in common: help, mistakes, closed pipes. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandHelp } from '../../src/cli/commands.ts';
import { run } from '../../src/cli/run.ts';
import { COMMANDS, type CommandName } from '../../src/config/command-line.ts';
import { thisHost } from '../../src/config/host.ts';
import { builtServer } from '../harness/built-server.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { HAS_TERMINALS, PseudoTerminal } from '../harness/pseudo-terminal.ts';
import { runCommand } from './run-command.ts';

let place: IsolatedHome;
beforeAll(async () => {
  place = await createHome();
});
afterAll(() => place.remove());

const names = Object.keys(COMMANDS) as CommandName[];

/** Runs a command in this process. */
async function runHere(...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  try {
    const host = { ...thisHost(), homedir: place.home, cwd: place.project, env: place.env() };
    return { code: await run({ ...host, argv, program: builtServer() }), ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

test.each(names)('%s has its own help, with usage, flags and an example', async (name) => {
  const { code, stdout, stderr } = await runHere(name, '--help');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(await commandHelp(name));
  expect(stdout).toMatch(new RegExp(`^Usage: claude-code-mcp ${name}`, 'm'));
  expect(stdout).toMatch(/^Examples?:\n {2}claude-code-mcp /m);
  expect(stdout).not.toContain('undefined');
  expect((await runHere('help', name)).stdout).toBe(stdout);
});

const actions = [
  ...['start', 'stop', 'restart', 'status', 'logs', 'open', 'install', 'uninstall'].map((word) => ['hub', word]),
  ...['create', 'list', 'revoke'].map((word) => ['token', word]),
  ...['list', 'add', 'remove', 'replay', 'import', 'export'].map((word) => ['rules', word]),
  ...['list', 'prune'].map((word) => ['worktrees', word]),
] as [CommandName, string][];

test.each(actions)('%s %s has its own help, with its usage, its flags and an example', async (name, word) => {
  const { code, stdout, stderr } = await runHere(name, word, '--help');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^claude-code-mcp ${name} ${word}: `));
  expect(stdout).toMatch(new RegExp(`^Usage: claude-code-mcp ${name} ${word}( |$)`, 'm'));
  expect(stdout).toMatch(new RegExp(`^Example:\\n {2}claude-code-mcp ${name} ${word}`, 'm'));
  expect(stdout).not.toContain('undefined');
  expect((await runHere('help', name, word)).stdout).toBe(stdout);
  expect((await runHere(name, '--help')).stdout).toMatch(new RegExp(`^ {2}${word} +\\S`, 'm'));
});

test('the help of an action has its flags and no others', async () => {
  const { stdout } = await runHere('hub', 'stop', '--help');
  expect(stdout).toMatch(/^Flags:\n {2}--keep\n {6}their work goes on/m);
  expect(stdout).not.toMatch(/--json|--listen/);
  const all = (await runHere('hub', '--help')).stdout;
  expect(all).toContain('with open: print the sign-in link; with install: print the service file');
});

test('help without a command is the help of all of them', async () => {
  const { stdout } = await runHere('help');
  for (const name of names) expect(stdout).toContain(`\n  ${name} `);
  for (const argv of [['--help'], ['help', 'help']]) expect((await runHere(...argv)).stdout).toBe(stdout);
});

test.each([
  [['help', 'tokn'], 'did you mean token?'],
  [['inbx'], 'did you mean inbox?'],
  [['hub', 'strat'], 'did you mean start?'],
  [['hub', 'stat'], 'did you mean status?'],
  [['hub', '--lisen', '127.0.0.1:0'], 'did you mean --listen?'],
  [['hub', 'status', '--jsn'], 'did you mean --json?'],
  [['audit', '--lst', '5'], 'did you mean --last?'],
  [['doctor', '--ofline'], 'did you mean --offline?'],
  [['token', 'lst'], 'did you mean list?'],
  [['worktrees', 'prun'], 'did you mean prune?'],
  [['install', 'codx'], 'did you mean codex?'],
  [['help', 'hub', 'strat'], 'did you mean start?'],
  [['rules', 'ad', '--help'], 'did you mean add?'],
  [['rules'], 'rules takes list, add, remove, replay, import or export'],
  [['token', 'create', 'ci', '--role', 'calller'], 'did you mean caller?'],
  [['audit', '--decision', 'alow'], 'did you mean allow?'],
  [['audit', '--kind', 'end of it'], 'it takes tool_call, start, request, decision, end or server'],
  [['rules', 'add', 'alow', 'Bash(ls)'], 'did you mean allow?'],
  [['rules', 'import', 'readin'], 'did you mean reading?'],
  [['rules', 'add', 'allow', 'Bash(ls)', '--directory', '/nowhere'], '"/nowhere" is not a directory'],
  [['start', '--permission-mode', 'acceptedits', 'x'], 'did you mean acceptEdits?'],
  [['hub', 'status', '--toolset', 'explict'], 'Did you mean explicit?'],
  [['allow'], 'allow needs a request id'],
  [['deny', 'x', '--mesage', 'no'], 'did you mean --message?'],
])('%j names the nearest on stderr', async (argv, says) => {
  const { code, stdout, stderr } = await runHere(...argv);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(says);
});

test('a pipe that is closed early ends a command quietly', async () => {
  const log = path.join(place.home, 'audit.jsonl');
  await mkdir(path.dirname(log), { recursive: true });
  const entry = { time: '2026-01-02T03:04:05.000Z', kind: 'tool_call', who: 'caller', what: 'x'.repeat(1000) };
  await appendFile(log, `${JSON.stringify(entry)}\n`.repeat(2000));
  const args = [builtServer(), 'audit', '--json', '--last', '2000', '--audit-log', log];
  const child = spawn(process.execPath, args, { env: place.env(), stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
  await once(child.stdout, 'data');
  child.stdout.destroy();
  await once(child, 'exit');
  expect(stderr).toBe('');
});

test('a state directory that is a file is one line on stderr', async () => {
  const file = path.join(place.home, 'a-file');
  await appendFile(file, '');
  for (const argv of [['hub'], ['hub', 'start'], ['token', 'list'], ['audit']]) {
    const { code, stdout, stderr } = await runCommand([...argv, '--state-dir', file], { env: place.env() });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^[^\n]*a-file[^\n]*\n$/);
  }
});

test.runIf(process.platform === 'linux')('a current directory that was removed is one line on stderr', async () => {
  const gone = path.join(place.home, 'gone');
  await mkdir(gone);
  const script = `cd ${gone} && rmdir ${gone} && exec ${process.execPath} ${builtServer()} audit`;
  const child = spawn('sh', ['-c', script], { env: place.env(), stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
  const [code] = (await once(child, 'close')) as [number];
  expect(code).toBe(2);
  expect(stderr).toMatch(/^claude-code-mcp: The current directory no longer exists[^\n]*\n$/);
});

test.runIf(HAS_TERMINALS)('in a terminal the server says what it is waiting for', async () => {
  const terminal = await PseudoTerminal.run([], { env: place.env(), cwd: place.project });
  await terminal.shows('waiting for an MCP client');
  terminal.type('\u0003');
  await terminal.exited;
});
