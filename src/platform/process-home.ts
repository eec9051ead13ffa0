/** Where Claude Code processes live: in this server, or with a keeper that outlives it. */

import type { EventEmitter } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { ProgramCall } from './held-process.ts';

/** What the driver needs of a child process. */
export interface HeldChild extends EventEmitter {
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: NodeJS.Signals | null;
  readonly killed: boolean;
  readonly stdout: Readable;
  readonly stderr: Readable;
  kill(signal: NodeJS.Signals): boolean;
  /** Where it stands in its output, if that outlives this server. */
  readonly position?: OutputPosition;
  /** Removes and returns the number of the line of output that a message came in. */
  takeLine?(message: object): number | undefined;
  /** Everything that this line of its output causes has been caused. */
  processed?(line: number): void;
}

/** How much of a process's output has been dealt with. */
export interface OutputPosition {
  readonly run: string;
  readonly line: number;
}

export interface StartedChild {
  readonly child: HeldChild;
  readonly stdin: Writable;
}

/** Starts one process. */
export interface Starter {
  start(call: ProgramCall): StartedChild;
  /** There will be no process. */
  discard(): void;
}

/** Whose process it will be, and the rules that it is launched under. */
export interface RunOwner {
  readonly session: string;
  readonly rules?: Readonly<Record<string, unknown>> | undefined;
}

export interface ProcessHome {
  /** The next start finds everything prepared. */
  prepareAhead(): void;
  prepare(runId: string, owner: RunOwner): Promise<Starter>;
  /** Environment that marks a run. */
  adopt(runId: string, session: string): Record<string, string>;
  /** The root process of a run is there, or gone. */
  spawned(runId: string, pid: number): void;
  exited(runId: string): void;
  /** The run may continue only until `extend` says. */
  lend(runId: string): void;
  unlend(runId: string): void;
  extend(ms: number): void;
  /** The session whose Claude Code this process is. */
  sessionOfProcess(pid: number): string | undefined;
  sessionOfGroup(cgroup: string): string | undefined;
  /** Ends a run's whole tree. */
  stopRun(runId: string, rootPid: number | undefined): Promise<void>;
  /** Ends what earlier servers left behind. */
  sweep(): Promise<void>;
  release(): Promise<void>;
}
