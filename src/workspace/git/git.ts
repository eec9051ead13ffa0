import { constants } from 'node:fs';
import { copyFile, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../errors/errors.ts';
import { runGit, type GitHost, type GitOutput, type GitRun, killTree, spawnGit } from './git-process.ts';

/** Runs git in one place and returns its output; failure is an error unless the code is expected. */
export interface Git {
  (args: readonly string[], options?: GitCall): Promise<string>;
  readonly bytes: (args: readonly string[], options?: GitCall) => Promise<GitOutput>;
  readonly host: GitHost;
  readonly cwd: string;
  /** What goes before the command. */
  readonly prefix: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface GitCall extends Pick<GitRun, 'input' | 'timeoutMs' | 'maxBytes'> {
  readonly env?: Readonly<Record<string, string>>;
  /** Exit codes that are valid answers; 0 by default. */
  readonly codes?: readonly number[];
}

export class GitError extends DomainError {
  readonly exitCode: number;
  readonly stderr: string;

  constructor(command: string, { code, stderr }: GitOutput) {
    super('INTERNAL', `git ${command} failed (${code}): ${stderr.trim() || 'it gave no reason'}`);
    this.exitCode = code;
    this.stderr = stderr;
  }
}

const ATTEMPTS = 8;

/**
 * Git fails on a lock that another git holds, and on an entry that another one is still creating; both pass quickly.
 */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isPassing =
        error instanceof GitError && /\.lock'|cannot lock ref|commondir|gitdir|could not create/i.test(error.stderr);
      if (!isPassing || error.stderr.includes('already exists') || attempt === ATTEMPTS) throw error;
      await sleep(20 * attempt + Math.random() * 50);
    }
  }
}

/**
 * Settings that override those of the repository, for commands that must read its own configuration: they look up and
 * move refs and administer worktrees, and never read or write a file of a working tree (that is `sealed.ts`).
 */
const OVERRIDES = [
  'core.hooksPath=/dev/null',
  ...['reference-transaction', 'post-checkout', 'post-index-change'].map((event) => `hook.${event}.enabled=false`),
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.pager=cat',
  'core.editor=:',
  'core.askPass=',
  'core.sshCommand=false',
  'core.gitProxy=',
  'core.alternateRefsCommand=false',
  'core.commitGraph=false',
  'core.useReplaceRefs=false',
  'core.quotePath=false',
  'core.attributesFile=/dev/null',
  'credential.helper=',
  'diff.external=',
  'interactive.diffFilter=',
  'commit.gpgSign=false',
  'tag.gpgSign=false',
  'log.showSignature=false',
  'gpg.program=false',
  'gpg.ssh.program=false',
  'gpg.x509.program=false',
  'protocol.allow=never',
  'submodule.recurse=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'branch.autoSetupMerge=false',
  // About our own GIT_GRAFT_FILE, at the head of every error.
  'advice.graftFileDeprecated=false',
].flatMap((setting) => ['-c', setting]);

/** Git before the repository is known: finds it from the directory, as the user's git would. */
export function gitAt(host: GitHost, cwd: string): Git {
  return bindGit(host, cwd, ['--no-pager', ...OVERRIDES], {});
}

/** Git in the repository itself. For a linked worktree pass its own entry below `worktrees`. */
export function gitIn(host: GitHost, gitDir: string): Git {
  return bindGit(host, gitDir, ['--no-pager', ...OVERRIDES], { GIT_DIR: gitDir });
}

/**
 * Git for changing refs. Git 2.54 and later run hooks defined in the configuration (`hook.<name>.command`), which
 * `core.hooksPath` does not affect; until they can be turned off per event, each must be turned off by name.
 */
export async function gitWithoutHooks(host: GitHost, gitDir: string): Promise<Git> {
  const git = gitIn(host, gitDir);
  const keys = zeroSeparated(await git(['config', '--list', '--name-only', '-z']));
  const names = new Set(keys.flatMap((key) => /^hook\.(.+)\.[^.]+$/.exec(key)?.[1] ?? []));
  const settings = [...names].map((name) => `hook.${name}.enabled`);
  // Not as arguments: a hook's name may contain an equals sign.
  const env = {
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap((key, index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, 'false'],
      ]),
    ),
  };
  return bindGit(host, git.cwd, git.prefix, { ...git.env, ...env });
}

export function bindGit(
  host: GitHost,
  cwd: string,
  prefix: readonly string[],
  fixed: Readonly<Record<string, string>>,
): Git {
  const bytes: Git['bytes'] = async (args, { codes = [0], env, ...call } = {}) => {
    const output = await runGit(host, { ...call, cwd, prefix, args, env: { ...fixed, ...env } });
    if (!codes.includes(output.code)) throw new GitError(args[0] ?? '', output);
    return output;
  };
  const text = async (args: readonly string[], call?: GitCall): Promise<string> =>
    (await bytes(args, call)).stdout.toString('utf8');
  return Object.assign(text, { bytes, host, cwd, prefix, env: fixed });
}

/** Fields of an output written with -z. */
export function zeroSeparated(text: string): string[] {
  return text === '' ? [] : text.replace(/\0$/, '').split('\0');
}

/** More than any of these files has; what a session puts in their place must not fill the memory. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * The text of a file that a session may have replaced; empty if there is none. A pipe or a device in its place would
 * block a thread of the server forever, or never end. `from`: the bytes before it are left out.
 */
export async function readPlainFile(file: string, from = 0): Promise<string> {
  const handle = await openPlainFile(file);
  if (!handle) return '';
  try {
    return (await handle.readFile()).toString('utf8', from);
  } catch {
    return '';
  } finally {
    await handle.close();
  }
}

/** Anything other than a regular file is not copied. */
export async function copyPlainFile(from: string, to: string): Promise<void> {
  const handle = await openPlainFile(from);
  if (!handle) return;
  await handle.close();
  await copyFile(from, to);
}

async function openPlainFile(file: string): Promise<Awaited<ReturnType<typeof open>> | undefined> {
  // Without waiting for the other end; Windows has neither this flag nor such files.
  const flags = constants.O_RDONLY | ((constants as Partial<typeof constants>).O_NONBLOCK ?? 0);
  const handle = await open(file, flags).catch(() => undefined);
  if (!handle) return undefined;
  const stats = await handle.stat();
  if (stats.isFile() && stats.size <= MAX_BYTES) return handle;
  await handle.close();
  return undefined;
}

export interface RefUpdate {
  readonly ref: string;
  readonly to: string;
  readonly from: string;
  readonly message: string;
}

/** Files are written but the ref has not followed, or not all files are: the journal says how to continue. */
export class UnfinishedError extends DomainError {
  constructor(message: string, options?: ErrorOptions) {
    super('INTERNAL', message, options);
  }
}

/** Another git holds the lock of a ref, or one that was killed has left it behind. */
export class RefBusyError extends DomainError {
  constructor(ref: string, lock: string) {
    super(
      'SESSION_BUSY',
      `Another git process is changing ${ref}. If there is none, remove ${lock}. Nothing was changed; try again.`,
    );
  }
}

const PATIENCE_MS = 30_000;
/** Longer than others take to move a ref, or to let go of it once their hub has died. */
const REF_LOCK_MS = 3_000;

/**
 * Locks the ref at its old value, does the work, then moves it: no one else can move it in between, and if the work
 * fails or this process dies, git sees its input end and releases the lock. Undefined if the ref was not at the old
 * value.
 */
export async function withRefLocked<T>(git: Git, update: RefUpdate, work: () => Promise<T>): Promise<T | undefined> {
  const { ref, to, from, message } = update;
  const child = spawnGit(git.host, {
    cwd: git.cwd,
    prefix: [...git.prefix, '-c', `core.filesRefLockTimeout=${String(REF_LOCK_MS)}`],
    args: ['update-ref', '-m', message, '--stdin'],
    env: git.env,
  });
  let output = '';
  let errors = '';
  let onChange = (): void => undefined;
  child.stdout?.setEncoding('utf8').on('data', (piece: string) => ((output += piece), onChange()));
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => (errors += piece));
  child.stdin?.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => {
    child.on('error', () => resolve(-1));
    child.on('close', (code) => resolve(code ?? -1));
  });
  const answered = (word: string): Promise<boolean> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => killTree(child), PATIENCE_MS);
      const settle = (isThere: boolean): void => {
        clearTimeout(timer);
        resolve(isThere);
      };
      onChange = () => {
        if (output.includes(`${word}: ok\n`)) settle(true);
      };
      onChange();
      void closed.then(() => settle(output.includes(`${word}: ok\n`)));
    });

  child.stdin?.write(`start\nupdate ${ref} ${to} ${from}\nprepare\n`);
  if (!(await answered('prepare'))) {
    if (/but expected|reference already exists|unable to resolve/.test(errors)) return undefined;
    const lock = /'([^']+\.lock)': File exists/.exec(errors)?.[1];
    if (lock !== undefined) throw new RefBusyError(ref, lock);
    throw new DomainError('INTERNAL', `${ref} cannot be moved: ${errors.trim()}. Nothing was changed.`);
  }
  try {
    const result = await work();
    child.stdin?.end('commit\n');
    if (!(await answered('commit'))) throw new UnfinishedError(`${ref} could not be moved: ${errors.trim()}`);
    return result;
  } finally {
    child.stdin?.end();
    await closed;
  }
}
