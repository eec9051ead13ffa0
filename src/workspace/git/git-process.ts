import { spawn, type ChildProcess } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';

/** The git to run and which parts of the environment it gets. */
export interface GitHost {
  /** Absolute: on Windows a bare name would first be looked up in the current directory. */
  readonly executable: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface GitRun {
  readonly cwd: string;
  readonly args: readonly string[];
  /** Options that go before the command. */
  readonly prefix?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
}

export interface GitOutput {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** `merge-tree --write-tree` is the most recent of the commands in use. */
const MINIMAL_GIT = '2.38';

const TIMEOUT_MS = 60_000;
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_STDERR = 16 * 1024;

/** What git and the user's filters need to find their files; everything else, above all GIT_*, is dropped. */
const INHERITED = [
  'HOME',
  'XDG_CONFIG_HOME',
  'TMPDIR',
  'TEMP',
  'TMP',
  'USERPROFILE',
  'HOMEDRIVE',
  'HOMEPATH',
  'APPDATA',
  'LOCALAPPDATA',
  'PROGRAMDATA',
  'SYSTEMROOT',
  'WINDIR',
  'COMSPEC',
  'PATHEXT',
];

const FIXED = {
  LC_ALL: 'C',
  // No prompts, no fetching, and objects are exactly what their hashes name.
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_GRAFT_FILE: '/dev/null',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_PAGER: 'cat',
  GIT_EDITOR: ':',
  GIT_SEQUENCE_EDITOR: ':',
  GIT_LFS_SKIP_SMUDGE: '1',
};

/** Undefined where there is no git on the PATH. */
export async function findGit(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform,
): Promise<GitHost | undefined> {
  const paths = platform === 'win32' ? path.win32 : path.posix;
  const value = (name: string): string | undefined =>
    platform === 'win32' ? Object.entries(env).find(([key]) => key.toUpperCase() === name)?.[1] : env[name];
  // A relative entry would be resolved in the repository's directory.
  const directories = (value('PATH') ?? '').split(paths.delimiter).filter((entry) => paths.isAbsolute(entry));
  for (const directory of directories) {
    const executable = paths.join(directory, platform === 'win32' ? 'git.exe' : 'git');
    if (!(await isProgram(executable))) continue;
    const inherited = INHERITED.flatMap((name) => {
      const found = value(name);
      return found === undefined ? [] : [[name, found] as const];
    });
    return {
      executable,
      env: { ...Object.fromEntries(inherited), ...FIXED, PATH: directories.join(paths.delimiter) },
    };
  }
  return undefined;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** Runs git to completion, whatever its exit code. Rejects if it could not run, took too long or wrote too much. */
export async function runGit(host: GitHost, run: GitRun): Promise<GitOutput> {
  const { timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES } = run;
  return new Promise((resolve, reject) => {
    const child = spawnGit(host, run);
    const pieces: Buffer[] = [];
    let size = 0;
    let stderr = '';
    let problem: DomainError | undefined;
    const stop = (code: 'TIMEOUT' | 'INTERNAL', message: string): void => {
      problem ??= new DomainError(code, message);
      killTree(child);
    };
    const timer = setTimeout(
      () => stop('TIMEOUT', `git ${run.args[0] ?? ''} took longer than ${timeoutMs} ms and was stopped.`),
      timeoutMs,
    );
    child.stdout?.on('data', (piece: Buffer) => {
      size += piece.length;
      if (size > maxBytes) stop('INTERNAL', `git ${run.args[0] ?? ''} wrote more than ${maxBytes} bytes.`);
      else pieces.push(piece);
    });
    child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
      stderr = (stderr + piece).slice(-MAX_STDERR);
    });
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(new DomainError('INTERNAL', `git could not be run: ${error.message}`, { cause: error }));
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      if (problem) reject(problem);
      else resolve({ code: code ?? 128, stdout: Buffer.concat(pieces), stderr });
    });
    // A git that exits before reading everything is judged by its exit code.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(run.input ?? '');
  });
}

/** In its own process group, so that it can be ended with everything it started. */
export function spawnGit(host: GitHost, { cwd, prefix = [], args, env }: Omit<GitRun, 'input'>): ChildProcess {
  return spawn(host.executable, [...prefix, ...args], {
    cwd,
    env: { ...host.env, ...env },
    stdio: 'pipe',
    detached: process.platform !== 'win32',
    windowsHide: true,
  });
}

export function killTree(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  if (process.platform === 'win32') {
    spawn('taskkill', ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true }).on('error', () =>
      child.kill(),
    );
    return;
  }
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

const versions = new WeakMap<GitHost, Promise<string>>();

/** Asks once for each git. */
export async function checkGitVersion(host: GitHost, cwd: string): Promise<void> {
  const asked = versions.get(host) ?? runGit(host, { cwd, args: ['version'] }).then(({ stdout }) => stdout.toString());
  versions.set(host, asked);
  const version = await asked.catch((error: unknown) => {
    versions.delete(host);
    throw error;
  });
  const found = /(\d+)\.(\d+)/.exec(version);
  const [major = 0, minor = 0] = (found?.slice(1) ?? []).map(Number);
  const [neededMajor = 0, neededMinor = 0] = MINIMAL_GIT.split('.').map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return;
  throw new DomainError('INVALID_ARGUMENT', `Worktrees need git ${MINIMAL_GIT} or newer; this is ${version.trim()}.`);
}
