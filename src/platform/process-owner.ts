import { randomUUID } from 'node:crypto';
import { HeldProcesses } from './held-process.ts';
import { markerEnv, thisSystem, type System } from './system.ts';
import { recordOwner, removeOwner, sweep } from './owner-records.ts';
import { startTimeOf, type ProcessId } from './processes.ts';
import type { ProcessHome, Starter } from './process-home.ts';
import { RunGroups, runsInGroups } from './run-groups.ts';
import { stopTree } from './stop-tree.ts';
import { startWatchdog, type Watchdog } from './watchdog.ts';

export interface ProcessOwnerOptions {
  stateDir: string;
  warn: (line: string) => void;
  system?: System;
}

/**
 * This server as the owner of processes: everything a session starts carries its mark, so that all of it can be found
 * and ended, by this server, by its watchdog, or by the next server's sweep.
 */
export class ProcessOwner implements ProcessHome {
  readonly id = randomUUID();
  readonly #stateDir: string;
  readonly #warn: (line: string) => void;
  readonly #system: System;
  /** Windows only, where environments cannot be read and only the start of a run leads to what it left behind. */
  readonly #roots = new Map<string, Promise<ProcessId | undefined>>();
  readonly #groups: RunGroups;
  readonly #held: HeldProcesses;
  /** The session of each run, and its root process while that is alive. */
  readonly #runs = new Map<string, { readonly session: string; pid: number | undefined }>();
  #watchdog: Watchdog | undefined;
  /** Runs that must not continue once this server has been silent for too long. */
  readonly #lent = new Set<string>();
  #lentUntil = 0;
  #recorded: Promise<void> = Promise.resolve();
  #told: string | undefined;

  constructor({ stateDir, warn, system = thisSystem }: ProcessOwnerOptions) {
    this.#stateDir = stateDir;
    this.#warn = warn;
    this.#system = system;
    this.#groups = new RunGroups(this.id, system);
    this.#held = new HeldProcesses(system.platform);
  }

  /** The next start finds everything prepared. */
  prepareAhead(): void {
    this.#held.prepareAhead();
  }

  /** For a process that is about to be started. */
  prepare(): Promise<Starter> {
    return this.#held.prepare();
  }

  /** Environment for a run of this session; the first one starts the watchdog. */
  adopt(runId: string, session: string): Record<string, string> {
    this.#runs.set(runId, { session, pid: undefined });
    if (!this.#watchdog) {
      this.#watchdog = startWatchdog({
        ownerId: this.id,
        groups: this.#groups.parent,
        system: this.#system,
        onProblem: this.#warn,
      });
      // The first run is lent before it is adopted.
      if (this.#lent.size > 0) this.#watch();
      this.#record();
    }
    return markerEnv(this.id, runId);
  }

  /**
   * The run may continue only until `extend` says: after that its session may run elsewhere. Call before its process
   * starts.
   */
  lend(runId: string): void {
    this.#lent.add(runId);
    this.#watch();
  }

  /** It may continue for as long as this server lives, or has ended. */
  unlend(runId: string): void {
    if (this.#lent.delete(runId)) this.#watch();
  }

  /** A server that hangs does not call this; the watchdog then ends the expiring runs. */
  extend(ms: number): void {
    this.#lentUntil = performance.now() + ms;
    this.#watch();
  }

  #watch(): void {
    this.#watchdog?.watch((this.#lentUntil - performance.now()) / 1000, [...this.#lent]);
  }

  /** The root process of a run. */
  spawned(runId: string, pid: number): void {
    const run = this.#runs.get(runId);
    if (run) run.pid = pid;
    void this.#groups.enter(runId, pid);
    if (this.#system.platform !== 'win32') return;
    const identity = startTimeOf(pid, this.#system).then(
      (startTime) => (startTime === undefined ? undefined : { pid, startTime }),
      () => undefined,
    );
    this.#roots.set(runId, identity);
    this.#record();
  }

  /** The root process of a run is gone, so its pid may come to belong to any other process. */
  exited(runId: string): void {
    const run = this.#runs.get(runId);
    if (run) run.pid = undefined;
  }

  /** The session whose Claude Code this process is. */
  sessionOfProcess(pid: number): string | undefined {
    for (const run of this.#runs.values()) if (run.pid === pid) return run.session;
    return undefined;
  }

  /** The session in whose cgroup a process runs, from its /proc/<pid>/cgroup. */
  sessionOfGroup(cgroup: string): string | undefined {
    for (const { owner, run } of runsInGroups(cgroup)) {
      const session = owner === this.id ? this.#runs.get(run)?.session : undefined;
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /** Ends a run's whole tree; the CLI ends its running command itself if asked first. */
  async stopRun(runId: string, rootPid: number | undefined): Promise<void> {
    const root = await this.#roots.get(runId);
    const { left } = await stopTree(
      { owner: this.id, run: runId, rootPid, rootStartTime: root?.startTime },
      { graceMs: 2_000, forceAfterMs: 2_600, deadlineMs: 4_600 },
      this.#system,
    );
    // After the tree, which may exit cleanly; what is left has evaded every search.
    await this.#groups.end(runId);
    this.#runs.delete(runId);
    this.unlend(runId);
    if (this.#roots.delete(runId)) this.#record();
    if (left > 0) this.#warn(`${String(left)} process(es) of a session could not be ended.`);
  }

  /** Ends what earlier servers left behind. */
  async sweep(): Promise<void> {
    await sweepLeftBehind(this.#stateDir, this.#warn, this.#system);
  }

  async release(): Promise<void> {
    await this.#held.close();
    if (!this.#watchdog) return;
    await stopTree({ owner: this.id }, { graceMs: 0, forceAfterMs: 1_500, deadlineMs: 3_000 }, this.#system);
    await this.#groups.endAll();
    await this.#recorded;
    await this.#watchdog.stop();
    await removeOwner(this.#stateDir, this.id);
  }

  /** Sequential, or an older list of roots could replace a newer one. */
  #record(): void {
    this.#recorded = this.#recorded.then(async () => {
      const roots = (await Promise.all(this.#roots.values())).filter((root) => root !== undefined);
      const problem = await recordOwner(this.#stateDir, this.id, { roots, groups: this.#groups.parent }, this.#system);
      if (problem !== undefined && problem !== this.#told)
        this.#warn(`The state directory is not writable, so a crash may leave processes behind: ${problem}`);
      this.#told = problem;
    });
  }
}

/** Ends what servers that died left behind, and says so. */
export async function sweepLeftBehind(
  stateDir: string,
  warn: (line: string) => void,
  system: System = thisSystem,
): Promise<void> {
  const { stopped, forced, problems } = await sweep({ stateDir }, system);
  if (stopped + forced > 0) warn(`Ended ${String(stopped + forced)} process(es) that an earlier server left behind.`);
  for (const { path, problem } of problems) warn(`${path}: ${problem}`);
}
