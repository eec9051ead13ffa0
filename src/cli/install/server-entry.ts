/** The name of an entry unless the user chooses another. */
export const DEFAULT_NAME = 'claude-code';

/** What a client has to run: this Node with this file, never a package by name. */
export interface ServerEntry {
  readonly command: string;
  readonly program: string;
  /** Flags after the program; undefined keeps those of an existing entry. */
  readonly flags: readonly string[] | undefined;
}

/** What a client has to call instead: the hub over HTTP, with its own token. */
export interface HttpEntry {
  readonly url: string;
  readonly token: string;
}

/** Entries written by `install` point at the installed file. */
const PROGRAM = /[\\/]dist[\\/]main\.mjs$/;
/** Entries written by hand name the command. After `npx` it would be the npm package of that name, which is not ours. */
const COMMAND = /(?:^|[\\/])claude-code-mcp(?:\.cmd)?$/;

/** Whether a command line starts this product. */
export function isOurs(line: readonly unknown[]): boolean {
  return programAt(line) >= 0;
}

/** Index of the program in a command line; negative if it is a different one. */
function programAt(line: readonly unknown[]): number {
  const [command] = line;
  if (typeof command === 'string' && COMMAND.test(command)) return 0;
  return line.findIndex((argument) => typeof argument === 'string' && PROGRAM.test(argument));
}

/** The command line for an entry, keeping the arguments that the user added after the program. */
export function commandLine({ command, program, flags }: ServerEntry, earlier: readonly unknown[]): string[] {
  const at = programAt(earlier);
  const added = at < 0 ? [] : earlier.slice(at + 1).map(String);
  return [command, program, ...(flags ?? added)];
}

const BEARER = /^Bearer (ccmcp_[\w-]{43})$/;

/** The token of the hub in the value of an `Authorization` header. */
export function tokenIn(header: unknown): string | undefined {
  return typeof header === 'string' ? BEARER.exec(header)?.[1] : undefined;
}

const ANY_TOKEN = /ccmcp_[\w-]{43}/g;

export function hasToken(text: string): boolean {
  return text.search(ANY_TOKEN) >= 0;
}

/** For a screen, which keeps what it showed. */
export function maskTokens(text: string): string {
  return text.replaceAll(ANY_TOKEN, 'ccmcp_…');
}
