/** One line of the result: what was measured, its target, and whether it was reached. */
export interface Row {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  /** Undefined if there is no target. */
  readonly reached: boolean | undefined;
  /** The underlying numbers, for further processing. */
  readonly numbers: Readonly<Record<string, number>>;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly platform: string;
  /** The one-minute load average at the start: above the number of cores, absolute times mean little. */
  readonly load: number;
}

export interface Results {
  readonly date: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly rows: readonly Row[];
  /** What a caller's model reads, in bytes. */
  readonly bytes: Readonly<Record<string, number>>;
  /** Other servers, measured in the same run. */
  readonly peers?: readonly Peer[];
  /** The jobs of a caller with this build, the one before and other servers, measured in one run. */
  readonly caller?: readonly CallerServer[];
}

/** What one job cost its caller. */
export interface JobCost {
  readonly job: string;
  readonly calls: number;
  /** What the caller's model has to read. */
  readonly bytes: number;
  /** Its caller got Claude's last words. */
  readonly isDone: boolean;
}

export interface CallerServer {
  readonly name: string;
  readonly jobs: readonly JobCost[];
  /** How often the caller was asked, in all jobs. */
  readonly decisions: number;
  /** How many of the files that the jobs ask for are there, in words. */
  readonly made: string;
  /** Whether the download that nobody wants was made. */
  readonly ranRefused: boolean;
}

export interface Peer {
  readonly name: string;
  readonly startMs: number | undefined;
  readonly listBytes: number | undefined;
  readonly note: string;
}
