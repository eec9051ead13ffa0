/** The commands `install` and `uninstall`: this server in the configuration of a client. */

import { parseArgs } from 'node:util';
import { nearestName } from '../../config/nearest-name.ts';
import type { Host } from '../../config/host.ts';
import { flagOf, rowOf, type SettingKey } from '../../config/settings-table.ts';
import { messageOf } from '../../errors/errors.ts';
import { askYesNo, type Terminal } from '../terminal/terminal.ts';
import { changedLines, lastBackup, readIfExists, removeWithBackup, writeWithBackup } from './change-file.ts';
import { CLIENTS, type ClientName, type InstallClient } from './clients.ts';
import type { ConfigFormat } from './config-format.ts';
import { JsonTextError } from './edit-json.ts';
import { TomlTextError } from './edit-toml.ts';

const BAD_USAGE = 2;
const DEFAULT_NAME = 'claude-code';

export interface InstallContext extends Host {
  /** The Node and the file that a client has to run, both absolute. */
  readonly command: string;
  readonly program: string;
  /** Settings to start the server with. */
  readonly flags: ReadonlyMap<SettingKey, string>;
  readonly terminal: Terminal;
  readonly now: Date;
}

export type Direction = 'install' | 'uninstall';

interface Choice {
  readonly client: ClientName;
  readonly name: string;
  readonly print: boolean;
  readonly yes: boolean;
}

/** A reason not to change anything, worded for the user. */
class Refusal extends Error {}

/** Returns the exit code. */
export async function runInstall(
  direction: Direction,
  rest: readonly string[],
  context: InstallContext,
): Promise<number> {
  const { terminal } = context;
  const choice = parse(direction, rest);
  if (typeof choice === 'string') {
    terminal.write(`${choice}\n${usage(direction)}`);
    return BAD_USAGE;
  }
  const client: InstallClient = CLIENTS[choice.client];
  const file = client.file(context);
  try {
    return await change(direction, choice, client, file, context);
  } catch (error) {
    const why = error instanceof JsonTextError || error instanceof TomlTextError;
    const words = why
      ? `${file} cannot be changed safely: ${error.message}. Please edit it by hand.`
      : messageOf(error);
    terminal.write(`${terminal.paint.red('✗')} ${words}\n`);
    return 1;
  }
}

async function change(
  direction: Direction,
  { name, print, yes }: Choice,
  client: InstallClient,
  file: string,
  context: InstallContext,
): Promise<number> {
  const { terminal, now } = context;
  const { paint } = terminal;
  const before = await readIfExists(file);
  const after =
    direction === 'install'
      ? added(before ?? '', name, client, context)
      : await removed(before ?? '', name, client, file);
  if (after === (before ?? '')) {
    const state = direction === 'install' ? 'already has this server' : `has no server named ${name} of this kind`;
    terminal.write(`${paint.green('✓')} ${client.title} ${state}: ${file}\n`);
    return 0;
  }
  const fate = before === undefined ? ' (new)' : after === undefined ? ' (removed: nothing else in it)' : '';
  terminal.write(`${paint.bold(client.title)}  ${file}${fate}\n\n`);
  terminal.write(`${changedLines(before ?? '', after ?? '', paint).join('\n')}\n\n`);
  if (print) return 0;
  if (!yes && !terminal.canAsk) {
    terminal.write('Nothing was changed: not an interactive terminal. Pass --yes to change the file.\n');
    return BAD_USAGE;
  }
  if (!yes && !(await askYesNo(terminal, 'Change the file?'))) {
    terminal.write('Nothing was changed.\n');
    return 1;
  }
  const backup = after === undefined ? await removeWithBackup(file, now) : await writeWithBackup(file, after, now);
  terminal.write(`${paint.green('✓')} Done.${backup === undefined ? '' : ` The previous version is in ${backup}`}\n`);
  const next = direction === 'install' ? client.nextStep : `${client.title} drops it when restarted.`;
  terminal.write(`  ${next}\n`);
  return 0;
}

function added(text: string, name: string, { format, title }: InstallClient, context: InstallContext): string {
  if (format.owner(text, name) === 'others') {
    throw new Refusal(`${title} already has a different server named ${name}; choose another name with --name.`);
  }
  const { command, program, flags } = context;
  return format.add(text, name, { command, program, flags: flags.size === 0 ? undefined : flagArguments(context) });
}

async function removed(
  text: string,
  name: string,
  { format, title }: InstallClient,
  file: string,
): Promise<string | undefined> {
  switch (format.owner(text, name)) {
    case 'us':
      return format.remove(text, name, await lastBackup(file, (kept) => hasNoEntry(format, kept, name)));
    case 'others':
      throw new Refusal(`The server named ${name} in ${title} is a different one; it was left alone.`);
    case 'nobody':
      return text;
  }
}

/** An unreadable backup proves nothing. */
function hasNoEntry(format: ConfigFormat, text: string, name: string): boolean {
  try {
    return format.owner(text, name) === 'nobody';
  } catch {
    return false;
  }
}

/** With values resolved here: the client will start the server in another directory. */
function flagArguments({ flags, ...host }: InstallContext): string[] {
  return [...flags].map(([key, written]) => {
    const { kind } = rowOf(key);
    if (kind.isSecret) {
      throw new Refusal(
        `${flagOf(key)} would end up in the client's file in plain text; set it as an environment variable instead.`,
      );
    }
    const parsed = kind.parse(written, host);
    return `${flagOf(key)}=${'value' in parsed ? kind.format(parsed.value, host) : written}`;
  });
}

function parse(direction: Direction, rest: readonly string[]): Choice | string {
  try {
    const { values, positionals } = parseArgs({
      args: [...rest],
      allowPositionals: true,
      options: {
        name: { type: 'string', default: DEFAULT_NAME },
        print: { type: 'boolean', default: false },
        yes: { type: 'boolean', short: 'y', default: false },
      },
    });
    const [client, extra] = positionals;
    if (client === undefined) return `Which client? ${direction} takes one.`;
    if (extra !== undefined) return `One client at a time; ${JSON.stringify(extra)} is one too many.`;
    if (!/^[\w-]{1,64}$/.test(values.name))
      return `--name takes letters, digits, - and _, not ${JSON.stringify(values.name)}.`;
    return isClient(client) ? { client, ...values } : unknownClient(client);
  } catch (error) {
    return messageOf(error);
  }
}

function isClient(word: string): word is ClientName {
  return Object.hasOwn(CLIENTS, word);
}

function unknownClient(word: string): string {
  const nearest = nearestName(word, Object.keys(CLIENTS));
  return `Unknown client ${JSON.stringify(word)}${nearest === undefined ? '.' : `; did you mean ${nearest}?`}`;
}

function usage(direction: Direction): string {
  const names = Object.entries(CLIENTS).map(([name, { title }]) => `  ${name.padEnd(16)}${title}`);
  return [
    `Usage: claude-code-mcp ${direction} <client> [--print] [--yes] [--name ${DEFAULT_NAME}]${direction === 'install' ? ' [settings]' : ''}`,
    ...names,
    '',
  ].join('\n');
}
