/** What a client has to run: this very Node with this very file, and never a package by its name. */
export interface ServerEntry {
  readonly command: string;
  readonly program: string;
  /** Flags behind the program; undefined keeps those that an earlier entry has. */
  readonly flags: readonly string[] | undefined;
}

/** What this command writes points at its file, wherever it was installed. */
const PROGRAM = /[\\/]dist[\\/]main\.mjs$/;
/** What a person writes by hand names the command. Behind `npx` it would be a package of that name: somebody else's. */
const COMMAND = /(?:^|[\\/])claude-code-mcp(?:\.cmd)?$/;

/** Whether a command line starts this product. */
export function isOurs(line: readonly unknown[]): boolean {
  return programAt(line) >= 0;
}

/** Where in a command line the program stands; below 0 when it is another one. */
function programAt(line: readonly unknown[]): number {
  const [command] = line;
  if (typeof command === 'string' && COMMAND.test(command)) return 0;
  return line.findIndex((argument) => typeof argument === 'string' && PROGRAM.test(argument));
}

/** The command line for an entry, with what a person added behind the program before. */
export function commandLine({ command, program, flags }: ServerEntry, earlier: readonly unknown[]): string[] {
  const at = programAt(earlier);
  const added = at < 0 ? [] : earlier.slice(at + 1).map(String);
  return [command, program, ...(flags ?? added)];
}
