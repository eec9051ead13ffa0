/** How the clients write down their servers. */

import { isDeepStrictEqual } from 'node:util';
import { readMember, removeMember, setMember } from './edit-json.ts';
import { appendTable, readTable, removeTable, replaceTable, tomlValue } from './edit-toml.ts';
import { commandLine, isOurs, type ServerEntry } from './server-entry.ts';

export type Owner = 'nobody' | 'us' | 'others';

export interface ConfigFormat {
  /** Whose the entry of this name is. */
  owner(text: string, name: string): Owner;
  add(text: string, name: string, entry: ServerEntry): string;
  /**
   * Also takes out a section that is empty then, unless `before`, the text before the entry was added, had it.
   * Undefined, for no file, when only the beginning of a new file is left and there was none before.
   */
  remove(text: string, name: string, before: string | undefined): string | undefined;
}

interface JsonLayout {
  /** Where the servers stand. */
  readonly servers: (text: string) => readonly string[];
  /** Whether the command and its arguments are one list. */
  readonly oneList?: true;
  /** What an entry needs besides them. */
  readonly besides?: Readonly<Record<string, unknown>>;
  /** What a new file begins with. */
  readonly begin?: string;
}

/** The command line of an entry, whichever way it is written. */
function commandOf(entry: unknown): unknown[] {
  const { command, args } = Object(entry) as { command?: unknown; args?: unknown };
  return [command, args].flat().filter((part) => part !== undefined);
}

export function jsonFormat({ servers, oneList, besides = {}, begin = '' }: JsonLayout): ConfigFormat {
  return {
    owner(text, name) {
      const entry = readMember(text, [...servers(text), name]);
      if (entry === undefined) return 'nobody';
      return isOurs(commandOf(entry)) ? 'us' : 'others';
    },
    add(text, name, entry) {
      const from = text.trim() === '' ? begin : text;
      const path = [...servers(from), name];
      const earlier = readMember(from, path);
      const [command, ...args] = commandLine(entry, commandOf(earlier));
      const run = oneList ? { command: [command, ...args] } : { command, args };
      // What a person added to the entry (variables, time-outs) stays.
      const kept = typeof earlier === 'object' && earlier !== null ? earlier : {};
      const fresh = { ...besides, ...kept, ...run };
      return isDeepStrictEqual(fresh, earlier) ? text : setMember(from, path, fresh);
    },
    remove(text, name, before) {
      const section = servers(text);
      let left = removeMember(text, [...section, name]);
      for (let depth = section.length; depth > 0; depth--) {
        const path = section.slice(0, depth);
        const isOurs = before === undefined || readMember(before, path) === undefined;
        if (!isOurs || !isDeepStrictEqual(readMember(left, path), {})) break;
        left = removeMember(left, path);
      }
      const isNew = before === undefined && isDeepStrictEqual(readMember(left, []), readMember(begin || '{}', []));
      return isNew ? undefined : left;
    },
  };
}

const TOML_STRING = /"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/g;
const COMMAND_LINE = /^([ \t]*command[ \t]*=[ \t]*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*')/m;
const ARGS = /^([ \t]*args[ \t]*=[ \t]*)\[[^\]]*\]/m;

/** Codex: a table for each server. */
export function tomlFormat(root: string): ConfigFormat {
  return {
    owner(text, name) {
      const table = readTable(text, [root, name]);
      if (table === undefined) return 'nobody';
      return isOurs(commandStrings(table)) ? 'us' : 'others';
    },
    add(text, name, entry) {
      const path = [root, name];
      const table = readTable(text, path);
      if (table === undefined) {
        const [command, ...args] = commandLine(entry, []);
        return appendTable(text, path, { command, args });
      }
      const [command, ...args] = commandLine(entry, commandStrings(table));
      return replaceTable(text, path, (old) =>
        old
          .replace(COMMAND_LINE, (_, key: string) => key + tomlValue(command))
          .replace(ARGS, (_, key: string) => key + tomlValue(args)),
      );
    },
    remove(text, name, before) {
      const left = removeTable(text, [root, name]);
      return before === undefined && left.trim() === '' ? undefined : left;
    },
  };
}

/** The command of a table and its arguments. */
function commandStrings(table: string): string[] {
  return [COMMAND_LINE.exec(table)?.[2] ?? '', ARGS.exec(table)?.[0] ?? ''].flatMap(stringsOf);
}

function stringsOf(table: string): string[] {
  return [...table.matchAll(TOML_STRING)].map(([written]) => {
    if (written.startsWith("'")) return written.slice(1, -1);
    try {
      return JSON.parse(written) as string;
    } catch {
      return written;
    }
  });
}
