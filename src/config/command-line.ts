import { nearestName, quote, SettingsError } from './bad-input.ts';
import { flagOf, rowOf, SETTING_KEYS, type SettingKey } from './settings-table.ts';

export const COMMANDS = {
  serve: 'serve MCP over stdin and stdout (the default)',
  hub: 'keep sessions for all clients of this user',
  inbox: 'show what waits for a person, and answer it',
  sessions: 'list the sessions of the hub',
  show: 'show a session and its last answer',
  follow: 'show what a session does, as it does it',
  start: 'start a session in this directory',
  send: 'send a message to a session',
  allow: 'allow a request',
  deny: 'deny a request',
  doctor: 'check this machine and report what to fix',
  demo: 'run a complete task with a scripted model: no key, no network',
  audit: 'show what was done and who decided it',
  token: 'create, list or revoke tokens for programs that use the hub',
  rules: 'make, replay and list standing rules: decisions in advance',
  worktrees: 'list the git worktrees of sessions, and prune merged ones',
  install: 'add this server to the configuration of an MCP client',
  uninstall: 'remove this server from the configuration of an MCP client',
} as const;

export type CommandName = keyof typeof COMMANDS;
export type Command = CommandName | 'help' | 'version';

export interface CommandLine {
  readonly command: Command;
  /** With `help`: the command that it is for; undefined for all of them. */
  readonly topic?: CommandName | undefined;
  /** Settings given as flags, verbatim; the last one wins. */
  readonly flags: ReadonlyMap<SettingKey, string>;
  /** Arguments of a subcommand, untouched; always empty for `serve`. With `help`: what stood before it or after the command. */
  readonly rest: readonly string[];
}

const INFO_FLAGS: Readonly<Record<string, 'help' | 'version'>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
  '-V': 'version',
  '-v': 'version',
};

const KEY_OF_FLAG: ReadonlyMap<string, SettingKey> = new Map(SETTING_KEYS.map((key) => [flagOf(key), key]));

export function parseCommandLine(argv: readonly string[]): CommandLine {
  let command: CommandName | undefined;
  const flags = new Map<SettingKey, string>();
  const rest: string[] = [];

  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? '';
    const { name, value } = splitFlag(argument);
    const key = KEY_OF_FLAG.get(name);
    const takesRest = command !== undefined && command !== 'serve';

    if (Object.hasOwn(INFO_FLAGS, argument))
      return { command: INFO_FLAGS[argument] ?? 'help', topic: command, flags, rest };
    if (takesRest && argument === '--') {
      rest.push(...argv.slice(index));
      break;
    }
    // Client configurations pass `""` for what the user left blank, launchers an `--` before nothing.
    if (!takesRest && (argument === '' || argument === '--')) continue;
    if (key !== undefined) {
      const given = value ?? (rowOf(key).kind.isSwitch ? 'on' : argv[++index]);
      flags.set(key, requireValue(key, given, value !== undefined));
    } else if (takesRest) rest.push(argument);
    else if (argument.startsWith('-')) throw unknownFlag(name);
    else if (command === undefined && argument === 'help') return helpAbout(argv.slice(index + 1));
    else if (command === undefined) command = requireCommand(argument);
    else throw new SettingsError(`Unexpected argument ${quote(argument)}; see claude-code-mcp --help.`);
  }
  if (command === undefined || command === 'serve') refuseHubFlags(flags);
  return { command: command ?? 'serve', flags, rest };
}

/** `help`, `help hub`, `help hub start`: an action has no help of its own. */
function helpAbout([word, ...rest]: readonly string[]): CommandLine {
  const topic = word === undefined || word === 'help' || word.startsWith('-') ? undefined : requireCommand(word);
  return { command: 'help', topic, flags: new Map(), rest };
}

/** A server that listens nowhere must not look as if it did. */
function refuseHubFlags(flags: ReadonlyMap<SettingKey, string>): void {
  const [stray] = [...flags.keys()].filter((key) => rowOf(key).scope === 'hub');
  if (stray !== undefined)
    throw new SettingsError(`${flagOf(stray)} is an option of the hub: claude-code-mcp hub ${flagOf(stray)} …`);
}

function splitFlag(argument: string): { name: string; value: string | undefined } {
  const equals = argument.startsWith('--') ? argument.indexOf('=') : -1;
  if (equals < 0) return { name: argument, value: undefined };
  return { name: argument.slice(0, equals), value: argument.slice(equals + 1) };
}

/** Without this check, `--max-sessions --prewarm` would swallow the second flag. */
function requireValue(key: SettingKey, given: string | undefined, attached: boolean): string {
  if (given !== undefined && (attached || !given.startsWith('--'))) return given;
  throw new SettingsError(`${flagOf(key)} needs a value; it takes ${rowOf(key).kind.accepts}.`);
}

function requireCommand(word: string): CommandName {
  if (Object.hasOwn(COMMANDS, word)) return word as CommandName;
  const nearest = nearestName(word, [...Object.keys(COMMANDS), 'help']);
  throw new SettingsError(
    `Unknown command ${quote(word)}; ${nearest ? `did you mean ${nearest}?` : 'see claude-code-mcp --help.'}`,
  );
}

/** Takes the name only: what follows `=` may be a secret behind a misspelt flag. */
function unknownFlag(name: string): SettingsError {
  const nearest = nearestName(name, [...KEY_OF_FLAG.keys(), '--help', '--version']);
  return new SettingsError(
    `Unknown flag ${quote(name)}; ${nearest ? `did you mean ${nearest}?` : 'see claude-code-mcp --help.'}`,
  );
}
