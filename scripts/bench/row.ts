/** One line of the result: what was measured, what it has to reach, whether it does. */
export interface Row {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  /** Undefined if there is no target. */
  readonly reached: boolean | undefined;
  /** The numbers behind it, for those who want to work with them. */
  readonly numbers: Readonly<Record<string, number>>;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly platform: string;
  /** One minute's load average when the run began: above the number of cores, absolute times mean little. */
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
}

export interface Peer {
  readonly name: string;
  readonly startMs: number | undefined;
  readonly listBytes: number | undefined;
  readonly note: string;
}
