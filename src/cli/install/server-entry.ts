/** What a client has to run: this very Node with this very file, and never a package by its name. */
export interface ServerEntry {
  readonly command: string;
  readonly program: string;
  /** Flags behind the program; undefined keeps those that an earlier entry has. */
  readonly flags: readonly string[] | undefined;
}

/** Entries of this product point at its file, wherever it was installed. */
const PROGRAM = /[\\/]dist[\\/]main\.mjs$/;

export function isProgram(argument: unknown): argument is string {
  return typeof argument === 'string' && PROGRAM.test(argument);
}

/** The command line for an entry, with what a person added behind the program before. */
export function commandLine({ command, program, flags }: ServerEntry, earlier: readonly unknown[]): string[] {
  const at = earlier.findIndex(isProgram);
  const added = at < 0 ? [] : earlier.slice(at + 1).map(String);
  return [command, program, ...(flags ?? added)];
}
