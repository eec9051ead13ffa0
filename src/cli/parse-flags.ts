import { statSync } from 'node:fs';
import { nearestName, quote, SettingsError } from '../config/bad-input.ts';
import { flagOf, SETTING_KEYS } from '../config/settings-table.ts';

/** A flag of one command. The settings, which are flags of every command, are read before. */
export interface Flag {
  /** What its value is called in the help; without it, it takes none. */
  readonly value?: string;
  readonly short?: string;
  readonly meaning: string;
}

export type Flags = Readonly<Record<string, Flag>>;

export type Given<F extends Flags> = {
  readonly [Name in keyof F]?: F[Name] extends { readonly value: string } ? string : true;
};

export interface ParsedFlags<F extends Flags> {
  readonly given: Given<F>;
  /** Everything that is not a flag, in order. */
  readonly words: readonly string[];
}

/** Reads the arguments of a command. A flag that it does not have is refused with the nearest one that it has. */
export function parseFlags<F extends Flags>(command: string, flags: F, args: readonly string[]): ParsedFlags<F> {
  const given: Record<string, string | true> = {};
  const words: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const argument = args[index] ?? '';
    if (argument === '--') {
      words.push(...args.slice(index + 1));
      break;
    }
    if (!/^-./.test(argument)) {
      words.push(argument);
      continue;
    }
    const [written, attached] = splitAtEquals(argument);
    const name = Object.keys(flags).find(
      (one) => written === `--${one}` || (flags[one]?.short !== undefined && written === `-${flags[one].short}`),
    );
    const flag = name === undefined ? undefined : flags[name];
    if (name === undefined || !flag) throw unknownFlag(command, written, flags);
    if (flag.value === undefined) {
      if (attached !== undefined) throw new SettingsError(`${written} takes no value.`);
      given[name] = true;
      continue;
    }
    const value = attached ?? args[++index];
    if (value === undefined) throw new SettingsError(`${written} needs a value: ${written} <${flag.value}>.`);
    given[name] = value;
  }
  return { given: given as Given<F>, words };
}

/** For a command that takes flags only. */
export function refuseWords(command: string, [word]: readonly string[]): void {
  if (word !== undefined) throw new SettingsError(`${command} does not take ${quote(word)}.`);
}

/** The word after the command must be one of these; the nearest one is named if it is not. */
export function requireAction<Word extends string>(
  command: string,
  word: string | undefined,
  known: readonly Word[],
): Word {
  if (word === undefined)
    throw new SettingsError(`${command} takes ${listed(known, 'or')}; see claude-code-mcp ${command} --help.`);
  return requireWord(`${command} has no action`, word, known);
}

/** `what` begins the message about a word that is not one of these. */
export function requireWord<Word extends string>(what: string, word: string, known: readonly Word[]): Word {
  const found = known.find((one) => one === word);
  if (found !== undefined) return found;
  const nearest = nearestName(word, known);
  throw new SettingsError(
    `${what} ${quote(word)}; ${nearest === undefined ? `it takes ${listed(known, 'or')}.` : `did you mean ${nearest}?`}`,
  );
}

/** For a flag that takes a directory of this machine. */
export function existingDirectory(flag: string, directory: string): string {
  try {
    if (statSync(directory).isDirectory()) return directory;
  } catch {
    // It does not exist, its name is too long, or one of its parents is a file.
  }
  throw new SettingsError(`${flag}: ${quote(directory)} is not a directory.`);
}

/** `a, b or c` */
export function listed(words: readonly string[], last: 'and' | 'or'): string {
  return [...words.slice(0, -2), words.slice(-2).join(` ${last} `)].join(', ');
}

function splitAtEquals(argument: string): [name: string, value: string | undefined] {
  const end = argument.startsWith('--') ? argument.indexOf('=') : -1;
  return end < 0 ? [argument, undefined] : [argument.slice(0, end), argument.slice(end + 1)];
}

/** Takes the name only: what follows `=` may be a secret behind a misspelt flag. */
function unknownFlag(command: string, written: string, flags: Flags): SettingsError {
  const nearest = nearestName(written, [...Object.keys(flags).map((name) => `--${name}`), ...SETTING_KEYS.map(flagOf)]);
  return new SettingsError(
    `${command} has no flag ${quote(written)}; ${nearest === undefined ? `see claude-code-mcp ${command} --help.` : `did you mean ${nearest}?`}`,
  );
}
