/** Whether a person has trusted a directory in Claude Code: `projects[<directory>].hasTrustDialogAccepted` of its global file. */

import { readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';

/** `own`: accepted for exactly this project. `inherited`: for a directory above it. */
export type ProjectTrust = 'own' | 'inherited' | 'none';

export interface TrustRecord {
  readonly trust: ProjectTrust;
  /** Where the person's own acceptance is, or would be, recorded. */
  readonly key: string;
}

/** Beside the config directory, or in the one that CLAUDE_CONFIG_DIR names. */
export function globalClaudeFile({ env, homedir }: { env: NodeJS.ProcessEnv; homedir: string }): string {
  return path.join(env['CLAUDE_CONFIG_DIR'] ?? homedir, '.claude.json');
}

/**
 * As Claude Code 2.1.325 decides: trust is recorded for the root of a repository (the main one of a worktree), else for
 * the directory. A trusted directory above it, but not above its repository, suppresses the dialog, but allow rules and
 * other things that grant permissions count only with `own`.
 */
export async function projectTrust(directory: string, globalFile: string): Promise<TrustRecord> {
  const start = await realpath(directory).catch(() => path.resolve(directory));
  const [trusted, repository] = await Promise.all([trustedDirectories(globalFile), findRepository(start)]);
  const key = asKey(repository?.mainRoot ?? start);
  if (trusted.has(key)) return { trust: 'own', key };
  const highest = repository?.root;
  for (const candidate of ancestry(start)) {
    if (trusted.has(asKey(candidate))) return { trust: 'inherited', key };
    if (candidate === highest) break;
  }
  return { trust: 'none', key };
}

async function trustedDirectories(globalFile: string): Promise<ReadonlySet<string>> {
  try {
    const { projects } = JSON.parse(await readFile(globalFile, 'utf8')) as {
      projects?: Record<string, { hasTrustDialogAccepted?: unknown } | null>;
    };
    const entries = Object.entries(projects ?? {});
    return new Set(entries.filter(([, entry]) => entry?.hasTrustDialogAccepted === true).map(([key]) => key));
  } catch {
    // No file, or one that is being written: nothing is known to be trusted.
    return new Set();
  }
}

interface Repository {
  readonly root: string;
  /** The checkout that a worktree belongs to. */
  readonly mainRoot: string;
}

async function findRepository(start: string): Promise<Repository | undefined> {
  for (const root of ancestry(start)) {
    const dotGit = path.join(root, '.git');
    const found = await stat(dotGit).catch(() => undefined);
    if (found?.isDirectory()) return { root, mainRoot: root };
    if (found?.isFile()) return { root, mainRoot: (await mainCheckout(dotGit)) ?? root };
  }
  return undefined;
}

/**
 * A worktree's `.git` file names `<main>/.git/worktrees/<name>`, where a file must point back: otherwise anyone could
 * write such a file and inherit the trust of another repository. A submodule's names a different place.
 */
async function mainCheckout(dotGitFile: string): Promise<string | undefined> {
  const gitDir = /^gitdir:\s*(.+?)\s*$/m.exec(await readFile(dotGitFile, 'utf8').catch(() => ''))?.[1];
  if (gitDir === undefined) return undefined;
  const absolute = path.resolve(path.dirname(dotGitFile), gitDir);
  const common = path.dirname(path.dirname(absolute));
  const isWorktree = path.basename(path.dirname(absolute)) === 'worktrees' && path.basename(common) === '.git';
  if (!isWorktree) return undefined;
  const namedBack = (await readFile(path.join(absolute, 'gitdir'), 'utf8').catch(() => '')).trim();
  const isKnown = namedBack !== '' && (await isSameFile(path.resolve(absolute, namedBack), dotGitFile));
  return isKnown ? realpath(path.dirname(common)).catch(() => undefined) : undefined;
}

async function isSameFile(a: string, b: string): Promise<boolean> {
  const [left, right] = await Promise.all([a, b].map((file) => realpath(file).catch(() => undefined)));
  return left !== undefined && left === right;
}

function* ancestry(directory: string): Generator<string> {
  for (let current = directory; ; current = path.dirname(current)) {
    yield current;
    if (path.dirname(current) === current) return;
  }
}

function asKey(directory: string): string {
  return path.sep === '\\' ? directory.replaceAll('\\', '/') : directory;
}

export interface ProjectRulesQuery {
  readonly cwd: string;
  readonly settingSources?: readonly string[] | undefined;
}

/**
 * A line for the caller if allow rules are ignored, with how to enable them. As in Claude Code 2.1.325:
 * `settings.local.json` is the person's own and needs no trust.
 */
export async function ignoredRulesWarning(
  { cwd, settingSources }: ProjectRulesQuery,
  { globalFile, configDir }: { globalFile: string; configDir: string },
): Promise<string | undefined> {
  if (settingSources?.includes('project') === false) return undefined;
  const folder = path.join(cwd, '.claude');
  // In the home directory they are the user's own.
  if ((await realPath(folder)) === (await realPath(configDir))) return undefined;
  if (!(await grantsAnything(path.join(folder, 'settings.json')))) return undefined;
  const { trust, key } = await projectTrust(cwd, globalFile);
  if (trust === 'own') return undefined;
  return (
    `Claude Code ignores the allow rules in .claude/settings.json: ${key} is not trusted yet. ` +
    `Run \`claude\` there once and accept the trust dialog, or set projects[${JSON.stringify(key)}].hasTrustDialogAccepted to true in ${globalFile}.`
  );
}

async function grantsAnything(file: string): Promise<boolean> {
  try {
    const { permissions } = JSON.parse(await readFile(file, 'utf8')) as {
      permissions?: { allow?: unknown; additionalDirectories?: unknown };
    };
    const grants = [permissions?.allow, permissions?.additionalDirectories];
    return grants.some((list) => Array.isArray(list) && list.length > 0);
  } catch {
    return false;
  }
}

function realPath(file: string): Promise<string> {
  return realpath(file).catch(() => path.resolve(file));
}
