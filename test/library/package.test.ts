import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { createWorld } from './library-world.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

test('importing the package has no side effects: no output, file, handle or listener', async () => {
  const { place, env } = await createWorld();
  // The package imports itself by name, as a program that installed it would. Node opens the standard streams
  // when node:process is imported, and closes the file of each module it has loaded.
  const script = `
    import 'node:process';
    const state = () => JSON.stringify({
      listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
      env: process.env,
      resources: process.getActiveResourcesInfo().filter((kind) => kind !== 'CloseReq'),
    });
    const before = state();
    const library = await import('${packageJson.name}');
    if (before !== state()) throw new Error(before + ' became ' + state());
    console.log(Object.keys(library).sort().join());`;
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: root, env });
  expect(stdout.trim()).toBe('DomainError,SettingsError,createEngine,createServer');
  expect(stderr).toBe('');
  expect(await readdir(place.stateDir)).toEqual([]);
});

test('a program that depends on the package finds complete types', { timeout: 90_000 }, async () => {
  // Inside the package, so that its own name resolves to it.
  const program = path.join(root, '.build', `types-${process.pid}.mts`);
  onTestFinished(() => rm(program, { force: true }));
  await writeFile(
    program,
    `import { createEngine, createServer, type SessionRecord } from '${packageJson.name}';
     const engine = createEngine({ approvals: 'human', maxSessions: 3 });
     const options = { permissionMode: 'plan', maxTurns: 3 } as const;
     const { sessionId } = await engine.execute({ kind: 'start', prompt: 'x', options });
     const record: SessionRecord = (await engine.untilAttention(sessionId)).record;
     const words: string | undefined = record.turn?.text;
     // @ts-expect-error: a value that does not exist
     createEngine({ approvals: 'nobody' });
     // @ts-expect-error: an option that does not exist
     await engine.execute({ kind: 'start', prompt: 'x', options: { permisionMode: 'plan' } });
     await createServer(engine).close();
     export { words };\n`,
  );
  const tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags =
    '--noEmit --strict --target es2023 --lib es2023 --module nodenext --types node --skipLibCheck --ignoreConfig'.split(
      ' ',
    );
  const { stdout } = await run(process.execPath, [tsc, ...flags, program], { cwd: root }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe('');
});

const python = ['python3', 'python'].find((program) => spawnSync(program, ['--version']).status === 0);
/** The program, its interpreter, what it needs to be told, and what it says at the end. */
const PROGRAMS = [
  ['embed.mjs', process.execPath, [], 'It is made.'],
  ['poll.mjs', process.execPath, [process.execPath, builtServer()], 'idle: It is made.'],
  ...(python === undefined
    ? []
    : [['poll.py', python, [process.execPath, builtServer()], 'idle: It is made.'] as const]),
] as const;

test.each(PROGRAMS)('%s runs a task, asks for permission, and leaves no process behind', async (...program) => {
  const [file, interpreter, server, end] = program;
  const world = await createWorld();
  world.model.on('make a file').reply(tool('Bash', { command: 'echo hi > made.txt' }), text('It is made.'));
  const args = [path.join(root, 'examples', file), 'make a file', world.place.project, ...server];
  const example = spawn(interpreter, args, { cwd: root, env: world.env, stdio: 'pipe' });
  let asked = '';
  example.stderr.setEncoding('utf8').on('data', (piece: string) => {
    asked += piece;
    if (asked.endsWith('Allow? [y/n] ')) example.stdin.write('y\n');
  });
  const said = readAll(example.stdout);
  const [code] = await once(example, 'exit');

  expect((await said).trimEnd().split('\n').at(-1)).toBe(end);
  expect(asked).toMatch(/Claude wants to use Bash: \{"command": ?"echo hi > made.txt"\}/);
  expect(code).toBe(0);
  expect(await readdir(world.place.project)).toEqual(['made.txt']);
  expect(await world.survivors()).toEqual([]);
});

test('the example of two clients of one engine shows that they do not see each other’s sessions', async () => {
  const world = await createWorld();
  world.model.on('does well').reply(text('It is small.'));
  world.model.on('do better').reply(text('It has no tests.'));
  const args = [path.join(root, 'examples', 'two-clients.mjs'), world.place.project];
  const { stdout } = await run(process.execPath, args, { cwd: root, env: world.env });
  expect(stdout).toMatch(/^It is small\.\nIt has no tests\.\n/);
  expect(stdout).toContain('SESSION_NOT_FOUND');
  expect(await world.survivors()).toEqual([]);
});

test('the worktree example applies the smallest of three changes', async () => {
  const world = await createWorld();
  const { project } = world.place;
  const git = (...args: string[]): Promise<{ stdout: string }> => run('git', args, { cwd: project, env: world.env });
  await git('init', '--quiet', '--initial-branch', 'main');
  await git('config', 'user.name', 'Test');
  await git('config', 'user.email', 'test@example.invalid');
  await writeFile(path.join(project, 'a.txt'), 'one\n');
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'begin');
  const write = (content: string): ReturnType<typeof tool> => tool('Write', { file_path: 'made.txt', content });
  world.model.on('few changes').reply(write('one\n'), text('done'));
  world.model.on('readable way').reply(write('one\ntwo\n'), text('done'));
  world.model.on('fastest way').reply(write('one\ntwo\nthree\n'), text('done'));
  const { stdout } = await run(process.execPath, [path.join(root, 'examples', 'worktrees.mjs'), 'Make it', project], {
    cwd: root,
    env: world.env,
  });
  expect(stdout).toContain('Make it, in the fastest way: files changed: 1 (+3 -0), nothing checked');
  expect(stdout).toContain('Make it, with as few changes as possible: applied');
  expect((await git('log', '--format=%s')).stdout).toBe('Make it\nbegin\n');
  expect((await git('show', 'HEAD:made.txt')).stdout).toBe('one\n');
  expect((await git('worktree', 'list')).stdout.trim().split('\n')).toHaveLength(1);
  // The rejected branches are kept.
  expect((await git('branch', '--list', 'claude/*')).stdout.trim().split('\n').length).toBeGreaterThanOrEqual(2);
  expect(await world.survivors()).toEqual([]);
});
