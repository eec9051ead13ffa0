/** How clients store their servers. */

import { isDeepStrictEqual } from 'node:util';
import { readMember, removeMember, setMember } from './edit-json.ts';
import { appendTable, readTable, removeTable, replaceTable, tableNames, tomlValue } from './edit-toml.ts';
import { commandLine, isOurs, tokenIn, type HttpEntry, type ServerEntry } from './server-entry.ts';

export type Owner = 'nobody' | 'us' | 'others';

export interface ConfigFormat {
  /** The command lines in the file that start this product, by the names of their entries. */
  commands(text: string): ReadonlyMap<string, readonly string[]>;
  /** Who owns the entry of this name. */
  owner(text: string, name: string): Owner;
  add(text: string, name: string, entry: ServerEntry): string;
  /** Undefined for a client whose file supports only commands. */
  readonly addHttp?: (text: string, name: string, entry: HttpEntry) => string;
  /** The token of the hub in the entry of this name. */
  token(text: string, name: string): string | undefined;
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
  /** The fields of an entry for a server over HTTP, except its headers. */
  readonly http?: (url: string) => Readonly<Record<string, unknown>>;
  /** Initial text of a new file. */
  readonly initialText?: string;
}

/** The command line of an entry, in either notation. */
function commandOf(entry: unknown): unknown[] {
  const { command, args } = Object(entry) as { command?: unknown; args?: unknown };
  return [command, args].flat().filter((part) => part !== undefined);
}

function ownCommands(lines: readonly (readonly [string, unknown[]])[]): ReadonlyMap<string, readonly string[]> {
  return new Map(lines.filter(([, line]) => isOurs(line)).map(([name, line]) => [name, line.map(String)]));
}

function fieldsOf(entry: unknown): object {
  return typeof entry === 'object' && entry !== null ? entry : {};
}

function headersOf(entry: unknown): Record<string, unknown> {
  return { ...(Object(entry) as { headers?: object }).headers };
}

function jsonToken(entry: unknown): string | undefined {
  return Object.entries(headersOf(entry))
    .filter(([name]) => name.toLowerCase() === 'authorization')
    .map(([, value]) => tokenIn(value))
    .find((token) => token !== undefined);
}

export function jsonFormat({
  servers,
  commandIsList,
  extraFields = {},
  http,
  initialText = '',
}: JsonLayout): ConfigFormat {
  /** Replaces an entry of the same kind, keeping what the user added to it (variables, timeouts). */
  const put = (text: string, name: string, make: (earlier: unknown) => object): string => {
    const from = text.trim() === '' ? initialText : text;
    const path = [...servers(from), name];
    const earlier = readMember(from, path);
    const fresh = make(earlier);
    return isDeepStrictEqual(fresh, earlier) ? text : setMember(from, path, fresh);
  };
  const token = (text: string, name: string): string | undefined =>
    jsonToken(readMember(text, [...servers(text), name]));
  return {
    commands(text) {
      const entries = Object.entries(fieldsOf(readMember(text, servers(text))));
      return ownCommands(entries.map(([name, entry]) => [name, commandOf(entry)]));
    },
    owner(text, name) {
      const entry = readMember(text, [...servers(text), name]);
      if (entry === undefined) return 'nobody';
      return isOurs(commandOf(entry)) || jsonToken(entry) !== undefined ? 'us' : 'others';
    },
    token,
    add: (text, name, entry) =>
      put(text, name, (earlier) => {
        const isCommand = jsonToken(earlier) === undefined;
        const [command, ...args] = commandLine(entry, isCommand ? commandOf(earlier) : []);
        const run = commandIsList ? { command: [command, ...args] } : { command, args };
        return { ...extraFields, ...(isCommand && fieldsOf(earlier)), ...run };
      }),
    ...(http && {
      addHttp: (text: string, name: string, { url, token: bearer }: HttpEntry) =>
        put(text, name, (earlier) => {
          const kept = jsonToken(earlier) === undefined ? {} : fieldsOf(earlier);
          const headers = Object.entries(headersOf(kept)).filter(([key]) => key.toLowerCase() !== 'authorization');
          return {
            ...kept,
            ...http(url),
            headers: { ...Object.fromEntries(headers), Authorization: `Bearer ${bearer}` },
          };
        }),
    }),
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
const URL_LINE = /^([ \t]*url[ \t]*=[ \t]*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*')/m;
const HEADERS_LINE = /^[ \t]*http_headers[ \t]*=.*$/m;

/** Codex: one table per server. */
export function tomlFormat(root: string): ConfigFormat {
  return {
    commands(text) {
      const names = tableNames(text, root);
      return ownCommands(names.map((name) => [name, commandStrings(readTable(text, [root, name]) ?? '')]));
    },
    owner(text, name) {
      const table = readTable(text, [root, name]);
      if (table === undefined) return 'nobody';
      return isOurs(commandStrings(table)) || tomlToken(table) !== undefined ? 'us' : 'others';
    },
    token: (text, name) => tomlToken(readTable(text, [root, name])),
    add(text, name, entry) {
      const path = [root, name];
      const table = readTable(text, path);
      if (table === undefined || tomlToken(table) !== undefined) {
        const [command, ...args] = commandLine(entry, []);
        return appendTable(removeTable(text, path), path, { command, args });
      }
      const [command, ...args] = commandLine(entry, commandStrings(table));
      return replaceTable(text, path, (old) =>
        old
          .replace(COMMAND_LINE, (_, key: string) => key + tomlValue(command))
          .replace(ARGS, (_, key: string) => key + tomlValue(args)),
      );
    },
    addHttp(text, name, { url, token }) {
      const path = [root, name];
      const earlier = tomlToken(readTable(text, path));
      if (earlier === undefined)
        return appendTable(removeTable(text, path), path, { url, http_headers: { Authorization: `Bearer ${token}` } });
      return replaceTable(text, path, (old) =>
        old
          .replace(URL_LINE, (_, key: string) => key + tomlValue(url))
          .replace(HEADERS_LINE, (line) => line.replace(earlier, token)),
      );
    },
    remove(text, name, before) {
      const left = removeTable(text, [root, name]);
      return before === undefined && left.trim() === '' ? undefined : left;
    },
  };
}

function tomlToken(table: string | undefined): string | undefined {
  return stringsOf(HEADERS_LINE.exec(table ?? '')?.[0] ?? '')
    .map(tokenIn)
    .find((token) => token !== undefined);
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
