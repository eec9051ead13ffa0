/** How clients store their servers. */

import { isDeepStrictEqual } from 'node:util';
import { readMember, removeMember, setMember } from './edit-json.ts';
import { appendTable, readTable, removeTable, replaceTable, tomlValue } from './edit-toml.ts';
import { commandLine, isOurs, type ServerEntry } from './server-entry.ts';

export type Owner = 'nobody' | 'us' | 'others';

export interface ConfigFormat {
  /** Who owns the entry of this name. */
  owner(text: string, name: string): Owner;
  add(text: string, name: string, entry: ServerEntry): string;
  /**
   * Also removes a section that becomes empty, unless it was already in `before`, the text before the entry was added.
   * Returns undefined to delete the file: there was none before, and nothing but its initial text is left.
   */
  remove(text: string, name: string, before: string | undefined): string | undefined;
}

interface JsonLayout {
  /** Path of the servers in the file. */
  readonly servers: (text: string) => readonly string[];
  /** Whether the command and its arguments form a single list. */
  readonly commandIsList?: true;
  /** Other fields that an entry needs. */
  readonly extraFields?: Readonly<Record<string, unknown>>;
  /** Initial text of a new file. */
  readonly initialText?: string;
}

/** The command line of an entry, in either notation. */
function commandOf(entry: unknown): unknown[] {
  const { command, args } = Object(entry) as { command?: unknown; args?: unknown };
  return [command, args].flat().filter((part) => part !== undefined);
}

export function jsonFormat({ servers, commandIsList, extraFields = {}, initialText = '' }: JsonLayout): ConfigFormat {
  return {
    owner(text, name) {
      const entry = readMember(text, [...servers(text), name]);
      if (entry === undefined) return 'nobody';
      return isOurs(commandOf(entry)) ? 'us' : 'others';
    },
    add(text, name, entry) {
      const from = text.trim() === '' ? initialText : text;
      const path = [...servers(from), name];
      const earlier = readMember(from, path);
      const [command, ...args] = commandLine(entry, commandOf(earlier));
      const run = commandIsList ? { command: [command, ...args] } : { command, args };
      // Keep what the user added to the entry (variables, timeouts).
      const kept = typeof earlier === 'object' && earlier !== null ? earlier : {};
      const fresh = { ...extraFields, ...kept, ...run };
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
      const isNew =
        before === undefined && isDeepStrictEqual(readMember(left, []), readMember(initialText || '{}', []));
      return isNew ? undefined : left;
    },
  };
}

const TOML_STRING = /"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/g;
const COMMAND_LINE = /^([ \t]*command[ \t]*=[ \t]*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*')/m;
const ARGS = /^([ \t]*args[ \t]*=[ \t]*)\[[^\]]*\]/m;

/** Codex: one table per server. */
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
