import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../errors/errors.ts';

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
