import { randomUUID } from 'node:crypto';
import { markerEnv } from './process/markers.ts';
import { recordOwner, removeOwner } from './process/owner-records.ts';
import { stopTree } from './process/stop-tree.ts';
import { sweep } from './process/sweep.ts';
import { startWatchdog, type Watchdog } from './process/watchdog.ts';

export interface ProcessOwnerOptions {
  stateDir: string;
  warn: (line: string) => void;
}

/**
 * This server as the owner of processes: whatever a session starts carries its mark, so that all of it can be found and
 * ended, by this server, by its watchdog, or by the next server's sweep.
 */
export class ProcessOwner {
  readonly id = randomUUID();
  readonly #stateDir: string;
  readonly #warn: (line: string) => void;
  #watching: { watchdog: Watchdog; recorded: Promise<unknown> } | undefined;

  constructor({ stateDir, warn }: ProcessOwnerOptions) {
    this.#stateDir = stateDir;
    this.#warn = warn;
  }

  /** Environment for a run; the first one brings up the watchdog. */
  adopt(runId: string): Record<string, string> {
    this.#watching ??= {
      watchdog: startWatchdog({ ownerId: this.id, onProblem: this.#warn }),
      recorded: this.#record(),
    };
    return markerEnv(this.id, runId);
  }

  /** Ends a run's whole tree; the CLI ends its running command itself when it is asked first. */
  async stopRun(runId: string, rootPid: number | undefined): Promise<void> {
    const { left } = await stopTree(
      { owner: this.id, run: runId, rootPid },
      { graceMs: 2_000, forceAfterMs: 2_600, deadlineMs: 4_600 },
    );
    if (left > 0) this.#warn(`${String(left)} process(es) of a session could not be ended.`);
  }

  /** Ends what earlier servers left behind. */
  async sweep(): Promise<void> {
    const { stopped, forced, problems } = await sweep({ stateDir: this.#stateDir });
    if (stopped + forced > 0)
      this.#warn(`Ended ${String(stopped + forced)} process(es) that an earlier server left behind.`);
    for (const { path, problem } of problems) this.#warn(`${path}: ${problem}`);
  }

  async release(): Promise<void> {
    if (!this.#watching) return;
    await stopTree({ owner: this.id }, { graceMs: 0, forceAfterMs: 1_500, deadlineMs: 3_000 });
    await this.#watching.recorded;
    await this.#watching.watchdog.stop();
    await removeOwner(this.#stateDir, this.id);
  }

  async #record(): Promise<void> {
    const problem = await recordOwner(this.#stateDir, this.id);
    if (problem !== undefined)
      this.#warn(`The state directory cannot be written, so a crash may leave processes: ${problem}`);
  }
}
