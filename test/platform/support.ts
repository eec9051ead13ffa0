import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { findMarked, startTimeOf } from '../../src/platform/processes.ts';
import { markerEnv, thisSystem, type System } from '../../src/platform/system.ts';

export function newOwner(): string {
  const owner = randomUUID();
  // Processes that a failing test left: the id was created here, so they are ours.
  onCleanup(async () => {
    for (const { pid } of await findMarked({ owner })) thisSystem.kill(pid, 'SIGKILL');
  });
  return owner;
}

/** Runs after the test, the last step first. */
export function onCleanup(step: () => unknown): void {
  onTestFinished(async () => {
    await step();
  });
}

export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'process-test-'));
  onCleanup(() => {
    rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}

export async function until(what: string, condition: () => unknown, timeoutMs = 10_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Not within ${timeoutMs} ms: ${what}`);
    // Each attempt reads the environment of every process on the machine.
    await pause(50);
  }
}

export async function alive(pid: number | undefined): Promise<boolean> {
  return pid !== undefined && (await startTimeOf(pid)) !== undefined;
}

export function start(
  file: string,
  args: string[],
  options: { env?: Record<string, string>; detached?: boolean } = {},
): ChildProcess {
  const child = spawn(file, args, {
    env: { PATH: '/usr/bin:/bin', ...options.env },
    detached: options.detached ?? false,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onCleanup(() => child.kill('SIGKILL'));
  return child;
}

/** An unrelated process, without a marker. */
export function startInnocent(): ChildProcess {
  return start('/bin/sleep', ['600']);
}

export function startMarked(owner: string, run: string, script: string): ChildProcess {
  return start('/bin/sh', ['-c', script], { env: markerEnv(owner, run) });
}

/** The root, a child, a child in its own session with a grandchild that ignores SIGTERM and has a child, an orphan. */
export const TREE = `
  sleep 600 &
  setsid sh -c 'sh -c "trap \\"\\" TERM INT HUP; while :; do sleep 600; done" & wait' &
  (setsid sleep 600 &)
  wait`;
export const TREE_SIZE = 6;

export async function startTree(owner: string, run: string): Promise<ChildProcess> {
  const root = startMarked(owner, run, TREE);
  await until('the tree is complete', async () => {
    const found = await findMarked({ owner, run });
    return found.length === TREE_SIZE && found.filter(({ pid }) => commandOf(pid).startsWith('sleep')).length === 3;
  });
  return root;
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** A scripted system, for platforms other than this one. */
export function fakeSystem(overrides: Partial<System>): System {
  const missing = (): never => {
    throw new Error('not scripted');
  };
  return {
    platform: 'linux',
    pid: 1,
    pids: missing,
    environ: missing,
    stat: missing,
    ownGroup: missing,
    run: missing,
    kill: missing,
    ...overrides,
  };
}
