import { lstat } from 'node:fs/promises';
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Settings } from '../../config/load-settings.ts';
import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { WorktreeState } from '../../workspace/worktree/worktree-state.ts';
import type { OwnWorktree } from '../rules/imposed-sandbox.ts';
import type { WorkspaceModule } from '../ports.ts';
import type { LaunchPlanner } from '../process/launch-plan.ts';
import { withoutWorkspaces, type OpenedWorkspace } from './session-work.ts';

/** A worktree with an unreadable record can only report that problem. */
export type ListedWorktree = WorktreeState;

/** Whose git filters the server uses: those that an untrusted repository configures are programs of its own. */
export function filtersIn(isTrusted: boolean): 'all' | 'user' {
  return isTrusted ? 'all' : 'user';
}

/** The worktrees of sessions: created at a start, found again later, never removed by the engine itself. */
export class SessionWorktrees {
  readonly #load: (() => Promise<WorkspaceModule>) | undefined;
  readonly #worktreesDir: string;
  /** Those of sessions that the server no longer knows. */
  readonly #reopened = new Map<string, OpenedWorkspace>();

  constructor(load: (() => Promise<WorkspaceModule>) | undefined, { worktreesDir }: Pick<Settings, 'worktreesDir'>) {
    this.#load = load;
    this.#worktreesDir = worktreesDir;
  }

  /** What a session that requests a worktree gets. */
  async create(
    sessionId: string,
    options: SessionOptions,
    launches: Pick<LaunchPlanner, 'isTrusted'>,
  ): Promise<OpenedWorkspace> {
    const { workspaces, ...words } = await this.#module();
    const { cwd = '', workspace } = options;
    const filters = filtersIn(await launches.isTrusted(options));
    const { base, branch } = workspace ?? {};
    return { ...words, workspace: await workspaces.openWorktree({ sessionId, cwd, base, branch, filters }) };
  }

  /** A fork continues from the last commit of the original, on its own branch and in its own worktree. */
  async fork(sessionId: string, original: Workspace): Promise<OpenedWorkspace> {
    const { workspaces, ...words } = await this.#module();
    return { ...words, workspace: await workspaces.forkWorktree(sessionId, original) };
  }

  /** The worktree that was made for this session, perhaps by another server. */
  async find(sessionId: string): Promise<OpenedWorkspace | undefined> {
    const known = this.#reopened.get(sessionId);
    if (known) return known;
    if (!(await this.#hasAny())) return undefined;
    const { workspaces, ...words } = await this.#module();
    const workspace = await workspaces.findWorktree(sessionId);
    if (!workspace) return undefined;
    const opened = { ...words, workspace };
    this.#reopened.set(sessionId, opened);
    return opened;
  }

  forget(sessionId: string): void {
    this.#reopened.delete(sessionId);
  }

  /** All of them, or that of one session. */
  async list(sessionId?: string): Promise<ListedWorktree[]> {
    if (!(await this.#hasAny())) return [];
    const { workspaces } = await this.#module();
    return workspaces.worktrees(sessionId);
  }

  /** Where sessions with a worktree work, and the checkout it was made from. */
  async checkouts(): Promise<ReadonlyMap<string, { readonly cwd: string; readonly origin: string }>> {
    if (!(await this.#hasAny())) return new Map();
    const { workspaces } = await this.#module();
    return workspaces.checkouts();
  }

  #module(): Promise<WorkspaceModule> {
    if (this.#load) return this.#load();
    throw withoutWorkspaces();
  }

  /** A server that never created one does not load the module to find that out. */
  async #hasAny(): Promise<boolean> {
    return (await lstat(path.join(this.#worktreesDir, '.records')).catch(() => undefined)) !== undefined;
  }
}

/** The options of a session in a worktree: its project settings come from the checkout that people trust. */
export function inWorktree(options: SessionOptions, { cwd, projectConfigRoot }: Workspace): SessionOptions {
  return { projectConfigRoot, ...options, cwd };
}

/** The directory that the session was started for. */
export function inCheckout({ cwd, projectConfigRoot = cwd, worktree }: Workspace): string {
  return path.join(projectConfigRoot, path.relative(worktree?.path ?? cwd, cwd));
}

export function requireWorktree(cwd: string): void {
  if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() === true) return;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `The worktree of this session is gone: ${cwd} does not exist; it was discarded. Start a new session, with base set to its branch if that was kept.`,
  );
}

/**
 * Claude Code (2.1.325) opens the whole repository of a worktree to its commands, except `config` and `hooks`. These
 * are the user's. Other branches cannot be closed: the name of one that does not exist as a file, because git has
 * packed it, would become an empty file while a command runs, breaking the branch for everyone.
 */
const USERS_OWN = ['HEAD', 'index', 'info', 'packed-refs', 'refs/tags', 'refs/remotes'];

/** What the sandbox of a session must leave open for its worktree. */
export function ownWorktree(workspace: Workspace | undefined, { stateDir }: Settings): OwnWorktree | undefined {
  const { worktree, repository, sandbox } = workspace ?? {};
  if (!worktree || repository === undefined) return undefined;
  return {
    path: worktree.path,
    repository,
    writable: sandbox?.allow ?? [],
    readOnly: [...(sandbox?.deny ?? []), ...USERS_OWN.map((name) => path.join(repository, name)).filter(existsSync)],
    besides: besidesPath(stateDir, worktree.path),
  };
}

/** Those of these places that exist, except the path to the session's own worktree. */
export function maskedPlaces(places: readonly string[], workspace: Workspace | undefined): string[] {
  const own = workspace?.worktree?.path;
  const masked = own === undefined ? places : places.flatMap((place) => besidesPath(place, own));
  // A command would see an empty file in place of a missing one, and so would everyone else.
  return [...new Set(masked)].filter((place) => existsSync(place));
}

/** Links resolved where possible: a recorded directory may be gone. */
export function isInside(directory: string, place: string): boolean {
  const way = path.relative(realOrWritten(directory), realOrWritten(place));
  return way !== '' && way.split(path.sep)[0] !== '..' && !path.isAbsolute(way);
}

function realOrWritten(place: string): string {
  try {
    return realpathSync.native(place);
  } catch {
    return place;
  }
}

/** Everything in a directory except the path to one place in it; the directory itself if the place is elsewhere. */
function besidesPath(directory: string, place: string): string[] {
  if (!isInside(directory, place)) return [directory];
  const way = path.relative(realOrWritten(directory), realOrWritten(place)).split(path.sep);
  return way.flatMap((step, depth) => {
    const parent = path.join(directory, ...way.slice(0, depth));
    return entriesOf(parent)
      .filter((name) => name !== step)
      .map((name) => path.join(parent, name));
  });
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
