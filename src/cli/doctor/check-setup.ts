import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, mkdir, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Host } from '../../config/host.ts';
import { ineffectiveSettings, loadSettings, type Settings, type SettingsSource } from '../../config/load-settings.ts';
import { findGitBash, missingSandboxPackages, SANDBOX_REMEDY } from '../../config/needed-programs.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { rowOf, SETTING_KEYS, variableOf } from '../../config/settings-table.ts';
import { withKnownDenyOptions } from '../../driver/options-table.ts';
import { messageOf } from '../../errors/errors.ts';
import { findGit } from '../../workspace/git/git-process.ts';

const CHECK = 'Settings';

/** The finding, and settings to continue with: the defaults if the real ones are invalid. */
export function checkSettings(source: SettingsSource): { finding: Finding; settings: Settings } {
  try {
    const settings = withKnownDenyOptions(loadSettings(source));
    return { finding: effect(source, settings), settings };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const remedy = 'Correct it where the server is started; claude-code-mcp --help lists every setting.';
    return { finding: problem(CHECK, error.message, remedy), settings: defaults(source) };
  }
}

function effect({ env }: SettingsSource, settings: Settings): Finding {
  const [first] = ineffectiveSettings(env, settings);
  if (first) return problem(CHECK, first.what, first.remedy);
  const given = SETTING_KEYS.map(variableOf).filter((name) => env[name]);
  return ok(CHECK, given.length === 0 ? 'defaults' : given.join(', '));
}

function defaults({ env, ...host }: SettingsSource): Settings {
  const read = new Set(SETTING_KEYS.flatMap((key) => [variableOf(key), ...(rowOf(key).alsoReads ?? [])]));
  const others = Object.entries(env).filter(([name]) => !read.has(name));
  return loadSettings({ ...host, argv: [], env: Object.fromEntries(others) });
}

/** A server in a session of a server, and so on. */
export function checkNesting({ depth, maxDepth }: Settings): Finding {
  const check = 'Nesting';
  if (depth >= maxDepth) {
    return problem(
      check,
      `nested inside ${depth} session(s) of this server, and the limit is ${maxDepth}: sessions are refused`,
      'Start the server outside those sessions, or raise CLAUDE_CODE_MCP_MAX_DEPTH.',
    );
  }
  return ok(check, depth === 0 ? 'not nested inside another session' : `${depth} of at most ${maxDepth}`);
}

/** What one check found, in plain language, and what to do about it. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'problem' | 'skipped';
  readonly found: string;
  /** Only with a problem. */
  readonly remedy?: string;
}

export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found };
}

export function problem(check: string, found: string, remedy: string): Finding {
  return { check, status: 'problem', found, remedy };
}

export function skipped(check: string, found: string): Finding {
  return { check, status: 'skipped', found };
}

/** On Windows Claude Code runs commands in Git Bash. Elsewhere there is nothing to check. */
export function checkGitBash(...asked: Parameters<typeof findGitBash>): Finding | undefined {
  const check = 'Git Bash';
  const bash = findGitBash(...asked);
  switch (bash.kind) {
    case 'not needed':
      return undefined;
    case 'found':
      return ok(check, bash.file);
    case 'missing':
      return problem(check, bash.problem, bash.remedy);
  }
}

/** Needed for worktrees and to see what a session changed; sessions work without it. */
export async function checkGit({ env }: Pick<Host, 'env'>): Promise<Finding> {
  const check = 'git';
  const git = await findGit(env);
  if (git === undefined)
    return skipped(check, 'not found on the PATH; worktrees need it, and reports of what a session changed');
  try {
    const options = { env, timeout: 10_000, windowsHide: true };
    const { stdout } = await promisify(execFile)(git.executable, ['--version'], options);
    return ok(check, stdout.trim().replace(/^git version /, ''));
  } catch (error) {
    return problem(check, `it does not run: ${messageOf(error)}`, 'Reinstall git, or remove it from the PATH.');
  }
}

/** Whether commands could be sandboxed here; a problem only where the operator wants them to be. */
export function checkSandbox(host: Pick<Host, 'env' | 'platform'>, isOn: boolean): Finding {
  const check = 'Sandbox';
  const missing = missingSandboxPackages(host).join(' and ');
  if (missing === '') return ok(check, isOn ? 'on' : 'off (CLAUDE_CODE_MCP_SANDBOX); it could be turned on');
  if (!isOn) return skipped(check, `off (CLAUDE_CODE_MCP_SANDBOX); it requires ${missing}`);
  return problem(check, `${missing} is not installed: sessions are refused`, SANDBOX_REMEDY);
}

/** Where sessions work that name no directory of their own. */
export async function checkWorkingDirectory(cwd: string, { allowedDirs }: Settings): Promise<Finding> {
  const check = 'Working directory';
  try {
    await readdir(cwd);
  } catch (error) {
    return problem(check, messageOf(error), 'Start the server in an existing directory that you can read.');
  }
  const real = await realpath(cwd);
  const inside = allowedDirs?.some((allowed) => real === allowed || real.startsWith(withSeparator(allowed))) ?? true;
  if (!inside) {
    return problem(
      check,
      `${cwd} is outside CLAUDE_CODE_MCP_ALLOWED_DIRS, so a session without a cwd is refused`,
      'Start the server inside an allowed directory, or add this one to CLAUDE_CODE_MCP_ALLOWED_DIRS.',
    );
  }
  return ok(check, cwd);
}

/** Writes like the server will: permissions alone do not reveal full disks and read-only mounts. */
export async function checkStateDirectory({ stateDir, auditLog }: Settings): Promise<Finding> {
  const check = 'State directory';
  const directories = auditLog === 'off' ? [stateDir] : [stateDir, path.dirname(auditLog)];
  for (const directory of new Set(directories)) {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await tryToWrite(directory);
    } catch (error) {
      const isFile = ['EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
      return problem(
        check,
        isFile
          ? `${directory}: a file is where a directory should be`
          : `${directory} is not writable: ${messageOf(error)}`,
        `${isFile ? 'Move it away' : 'Make it writable'}, or choose others with CLAUDE_CODE_MCP_STATE_DIR and CLAUDE_CODE_MCP_AUDIT_LOG.`,
      );
    }
  }
  return ok(check, stateDir);
}

/** Claude Code keeps its login and transcripts there. Not created here: that is up to Claude Code. */
export async function checkConfigDirectory(configDir: string): Promise<Finding> {
  const check = 'Claude Code directory';
  try {
    const existing = await nearestExisting(configDir);
    if (existing === configDir) await tryToWrite(configDir);
    else await access(existing, constants.W_OK);
    return ok(check, existing === configDir ? configDir : `${configDir}, created at the first start`);
  } catch (error) {
    return problem(
      check,
      `${configDir} is not writable: ${messageOf(error)}`,
      'Make it writable, or choose another with CLAUDE_CONFIG_DIR.',
    );
  }
}

async function tryToWrite(directory: string): Promise<void> {
  const probe = path.join(directory, `.doctor-${randomUUID()}`);
  await writeFile(probe, '');
  await rm(probe);
}

async function nearestExisting(directory: string): Promise<string> {
  try {
    const found = await stat(directory);
    if (!found.isDirectory()) throw new Error(`${directory} is not a directory`);
    return directory;
  } catch (error) {
    const parent = path.dirname(directory);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === directory) throw error;
    return nearestExisting(parent);
  }
}

function withSeparator(directory: string): string {
  return directory.endsWith(path.sep) ? directory : directory + path.sep;
}
