import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError, naming } from '../../errors/errors.ts';
import { worktreeRecord, type WorktreeRecord } from '../../schema/worktree-record.ts';
import type { Checkout } from '../git/checkout.ts';
import type { GitHost } from '../git/git-process.ts';
import type { Seal } from '../git/sealed.ts';

export interface WorktreeHost {
  readonly git: GitHost;
  readonly worktreesDir: string;
  /** Changes to one worktree are serialised, whichever process makes them. */
  readonly exclusively?: Exclusively;
  /** Whose path limits apply; by default this machine's. */
  readonly platform?: NodeJS.Platform;
  /** Called before each step that changes something; tests interrupt the work there. */
  readonly checkpoint?: (step: string) => void | Promise<void>;
}

/** Next to the worktrees and in none of them: a session writes only into its own. */
export function recordDir({ worktreesDir }: Pick<WorktreeHost, 'worktreesDir'>, id: string): string {
  return path.join(worktreesDir, '.records', id);
}

export async function saveRecord(host: WorktreeHost, record: WorktreeRecord): Promise<WorktreeRecord> {
  const directory = recordDir(host, record.id);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const temporary = path.join(directory, `record-${randomUUID()}.tmp`);
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(record, null, 2)}\n`).catch(naming(temporary));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path.join(directory, 'record.json'));
  return record;
}

/** Claims an unused id; false if someone was faster. */
export async function reserveRecord(host: WorktreeHost, id: string): Promise<boolean> {
  const directory = recordDir(host, id);
  await mkdir(path.dirname(directory), { recursive: true, mode: 0o700 });
  try {
    await mkdir(directory, { mode: 0o700 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

export async function loadRecord(
  host: Pick<WorktreeHost, 'worktreesDir'>,
  id: string,
): Promise<WorktreeRecord | undefined> {
  let text: string;
  try {
    text = await readFile(path.join(recordDir(host, id), 'record.json'), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return worktreeRecord.parse(JSON.parse(text));
  } catch (error) {
    const file = path.join(recordDir(host, id), 'record.json');
    throw new DomainError('INTERNAL', `${file} is not a worktree record.`, { cause: error });
  }
}

export async function requireRecord(host: WorktreeHost, id: string): Promise<WorktreeRecord> {
  const record = await loadRecord(host, id);
  if (record && record.state !== 'removed') return record;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `There is no worktree ${id}: it was discarded or never created. If its branch was kept, start a session with base set to that branch.`,
  );
}

export async function listRecordIds({ worktreesDir }: Pick<WorktreeHost, 'worktreesDir'>): Promise<string[]> {
  return (await readdir(path.join(worktreesDir, '.records')).catch(() => [])).sort();
}

export async function forgetRecord(host: WorktreeHost, id: string): Promise<void> {
  await rm(recordDir(host, id), { recursive: true, force: true });
}

/** From the record alone: the session controlled the contents of the worktree's own .git. */
export function checkoutOfRecord(record: WorktreeRecord): Checkout {
  if (record.entry === undefined)
    throw new DomainError('INTERNAL', `The worktree ${record.path} was never finished; discard it and start again.`);
  return {
    workTree: record.path,
    gitDir: path.join(record.commonDir, 'worktrees', record.entry),
    commonDir: record.commonDir,
  };
}

export function sealOf(host: WorktreeHost, record: WorktreeRecord, checkout = checkoutOfRecord(record)): Seal {
  return { host: host.git, checkout, pinned: record.pinned, scratch: recordDir(host, record.id) };
}

/** With exclusive access to the record, in its state by then. */
export async function withRecord<T>(
  host: WorktreeHost,
  id: string,
  work: (record: WorktreeRecord) => Promise<T>,
): Promise<T> {
  const { exclusively = (_, alone) => alone() } = host;
  return exclusively(id, async () => work(await requireRecord(host, id)));
}

export async function checkpoint(host: WorktreeHost, step: string): Promise<void> {
  await host.checkpoint?.(step);
}

export interface RepositoryWrites {
  /** Directories and files that a session needs to commit. */
  readonly allow: readonly string[];
  /** Below those, what would change how git behaves for others. */
  readonly deny: readonly string[];
}

export interface SandboxedWorktree {
  readonly commonDir: string;
  /** Name of the entry below `worktrees`. */
  readonly entry: string;
  /** Full name. */
  readonly branch: string;
}

/**
 * The parts of a repository that a sandboxed session must be able to write in order to commit in its worktree. Git
 * creates `<ref>.lock` beside a ref and renames it, so the directory must be writable, not only the file. Undefined if
 * that directory is `refs/heads` itself, which would open every branch.
 */
export function sandboxWrites({ commonDir, entry, branch }: SandboxedWorktree): RepositoryWrites | undefined {
  const refs = path.posix.dirname(branch);
  if (!refs.startsWith('refs/heads/')) return undefined;
  const own = path.join(commonDir, 'worktrees', entry);
  return {
    allow: [path.join(commonDir, 'objects'), path.join(commonDir, refs), path.join(commonDir, 'logs', refs), own],
    deny: [
      // Which objects count, and which repository the worktree belongs to.
      path.join(commonDir, 'objects', 'info'),
      ...['commondir', 'gitdir', 'config.worktree'].map((name) => path.join(own, name)),
    ],
  };
}

/** Takes a lock that other processes respect, or returns the process that holds it. */
export type TakeLock = (name: string) => Promise<{ release(): Promise<void> } | { readonly pid: number }>;

export type Exclusively = <T>(name: string, work: () => Promise<T>) => Promise<T>;

/** Applying many files takes a while; a lock whose holder is dead is void. */
const PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 25;

/** Serialises work under the same name: within this process, and across processes with a lock. */
export function exclusively(takeLock?: TakeLock, patienceMs = PATIENCE_MS): Exclusively {
  const last = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const turn = (last.get(name) ?? Promise.resolve()).then(() => locked(name, work, takeLock, patienceMs));
    const settled = turn
      .catch(() => undefined)
      .then(() => {
        if (last.get(name) === settled) last.delete(name);
      });
    last.set(name, settled);
    return turn;
  };
}

async function locked<T>(
  name: string,
  work: () => Promise<T>,
  takeLock: TakeLock | undefined,
  patienceMs: number,
): Promise<T> {
  if (!takeLock) return work();
  const until = performance.now() + patienceMs;
  for (;;) {
    const taken = await takeLock(name);
    if ('release' in taken) {
      try {
        return await work();
      } finally {
        await taken.release();
      }
    }
    if (performance.now() > until)
      throw new DomainError(
        'SESSION_BUSY',
        `Another claude-code-mcp (process ${String(taken.pid)}) is working on the worktree ${name}. Nothing was changed; try again.`,
      );
    await sleep(LOOK_AGAIN_MS);
  }
}
