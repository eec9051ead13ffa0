/** The commands `install` and `uninstall`: this server in the configuration of a client. */

import { nearestName, quote, SettingsError } from '../../config/bad-input.ts';
import type { Host } from '../../config/host.ts';
import { flagOf, rowOf, type SettingKey } from '../../config/settings-table.ts';
import { messageOf, ownFileProblem } from '../../errors/errors.ts';
import { INSTALL_FLAGS } from '../commands.ts';
import { checkExpiry } from '../token/run-token.ts';
import { parseFlags, type Given, type ParsedFlags } from '../parse-flags.ts';
import { askYesNo, type Terminal } from '../terminal/terminal.ts';
import {
  changedLines,
  makePrivate,
  lastBackup,
  readIfExists,
  removeWithBackup,
  writeWithBackup,
} from './change-file.ts';
import { CLIENTS, type ClientName, type InstallClient } from './clients.ts';
import type { ConfigFormat } from './config-format.ts';
import { JsonTextError } from './edit-json.ts';
import { TomlTextError } from './edit-toml.ts';
import { Refusal, type HubAccess } from './hub-access.ts';
import { DEFAULT_NAME, maskTokens } from './server-entry.ts';

const BAD_USAGE = 2;

export interface InstallContext extends Host {
  /** The Node and the file that a client has to run, both absolute. */
  readonly command: string;
  readonly program: string;
  /** Settings to start the server with. */
  readonly flags: ReadonlyMap<SettingKey, string>;
  readonly terminal: Terminal;
  readonly now: Date;
  /** For entries over HTTP, which contain a hub token. */
  readonly withHub: <T>(work: (hub: HubAccess) => Promise<T>) => Promise<T>;
}

export type Direction = 'install' | 'uninstall';

interface Choice {
  readonly client: ClientName;
  readonly name: string;
  readonly print: boolean;
  readonly yes: boolean;
  readonly http:
    { readonly url: string | undefined; readonly attended: boolean; readonly expires?: string } | undefined;
}

/** The new contents of the file; undefined: it will be removed. */
interface Plan {
  readonly after: string | undefined;
  /** Creates what is only a placeholder in `after`, once it is certain that the file will be changed. */
  readonly complete?: (hub: HubAccess) => Promise<string>;
  readonly remark?: string;
}

/** Returns the exit code. */
export async function runInstall(
  direction: Direction,
  rest: readonly string[],
  context: InstallContext,
): Promise<number> {
  const { terminal } = context;
  const choice = parse(direction, rest);
  const client: InstallClient = CLIENTS[choice.client];
  const file = client.file(context);
  try {
    return await change(direction, choice, client, file, context);
  } catch (error) {
    const why = error instanceof JsonTextError || error instanceof TomlTextError;
    const words = why
      ? `${file} cannot be changed safely: ${error.message}. Please edit it by hand.`
      : messageOf(ownFileProblem(error) ?? error);
    terminal.writeError(`${terminal.paint.red('✗')} ${words}\n`);
    return 1;
  }
}

async function change(
  direction: Direction,
  choice: Choice,
  client: InstallClient,
  file: string,
  context: InstallContext,
): Promise<number> {
  const { name, print, yes } = choice;
  const { terminal, withHub } = context;
  const { paint } = terminal;
  const before = await readIfExists(file);
  const held = client.format.token(before ?? '', name);
  // Removing the token from the file requires being able to revoke it.
  if (held !== undefined && !print) await withHub(async (hub) => hub.checkRights());
  const { after, complete, remark } =
    direction === 'uninstall'
      ? { after: await removed(before ?? '', name, client, file) }
      : choice.http
        ? await addedOverHttp(before ?? '', choice, client, context)
        : { after: added(before ?? '', name, client, context) };
  if (after === (before ?? '')) {
    const state = direction === 'install' ? 'already has this server' : `has no claude-code-mcp server named ${name}`;
    terminal.write(`${paint.green('✓')} ${client.title} ${state}: ${file}\n`);
    if (choice.http && !print && (await makePrivate(file))) terminal.write(`  ${NOW_PRIVATE}\n`);
    return 0;
  }
  const fate = before === undefined ? ' (new)' : after === undefined ? ' (removed: nothing else in it)' : '';
  terminal.write(`${paint.bold(client.title)}  ${file}${fate}\n\n`);
  terminal.write(`${changedLines(maskTokens(before ?? ''), maskTokens(after ?? ''), paint).join('\n')}\n\n`);
  if (remark !== undefined) terminal.write(`${remark}\n`);
  if (print) return 0;
  if (!yes && !terminal.canAsk) {
    terminal.writeError('Nothing was changed: not an interactive terminal. Pass --yes to change the file.\n');
    return BAD_USAGE;
  }
  if (!yes && !(await askYesNo(terminal, 'Change the file?'))) {
    terminal.write('Nothing was changed.\n');
    return 1;
  }
  const isPrivate = choice.http !== undefined || held !== undefined;
  const text = complete ? await withHub(complete) : after;
  const wasOpen = isPrivate && before !== undefined && (await makePrivate(file));
  const backup = await write(file, text, client.format, choice, context, isPrivate);
  terminal.write(`${paint.green('✓')} Done.${backup === undefined ? '' : ` The previous version is in ${backup}`}\n`);
  if (wasOpen) terminal.write(`  ${NOW_PRIVATE}\n`);
  if (held !== undefined && !(text ?? '').includes(held)) {
    const said = await withHub((hub) => hub.retire(held));
    if (said !== undefined) terminal.write(`  ${said}\n`);
  }
  const next = direction === 'install' ? client.nextStep : `${client.title} drops it when restarted.`;
  terminal.write(`  ${next}\n`);
  return 0;
}

const NOW_PRIVATE = 'The file contains a token; other users can no longer read it.';

/** A token that reached no file is of no use to anyone. */
async function write(
  file: string,
  text: string | undefined,
  format: ConfigFormat,
  { name }: Choice,
  { now, withHub }: InstallContext,
  isPrivate: boolean,
): Promise<string | undefined> {
  try {
    return await (text === undefined ? removeWithBackup(file, now) : writeWithBackup(file, text, { now, isPrivate }));
  } catch (error) {
    const unused = text === undefined ? undefined : format.token(text, name);
    if (unused !== undefined) await withHub((hub) => hub.retire(unused));
    throw error;
  }
}

function refuseOthersEntry(text: string, name: string, { format, title }: InstallClient): void {
  if (format.owner(text, name) === 'others')
    throw new Refusal(`${title} already has a different server named ${name}; choose another name with --name.`);
}

function added(text: string, name: string, client: InstallClient, context: InstallContext): string {
  refuseOthersEntry(text, name, client);
  const { command, program, flags } = context;
  const entry = { command, program, flags: flags.size === 0 ? undefined : flagArguments(context) };
  return client.format.add(text, name, entry);
}

/** No token is created until the user has agreed to the change. */
const PLACEHOLDER = `ccmcp_${'x'.repeat(43)}`;

async function addedOverHttp(
  text: string,
  { client: clientName, name, http, print }: Choice,
  client: InstallClient,
  { flags, withHub }: InstallContext,
): Promise<Plan> {
  const { addHttp } = client.format;
  if (!addHttp)
    throw new Refusal(
      `${client.title} supports only commands in its configuration. Omit --http: the command attaches to the hub automatically.`,
    );
  const query = queryFor(flags);
  refuseOthersEntry(text, name, client);
  return withHub(async (hub) => {
    if (!print) hub.checkRights();
    const origin = await hub.find(http?.url);
    const url = new URL(`/mcp${query}`, origin).href;
    const held = client.format.token(text, name);
    const wantsNew = http?.attended === true || http?.expires !== undefined;
    if (held !== undefined && !wantsNew && (print || (await hub.isValid(held))))
      return { after: addHttp(text, name, { url, token: held }) };
    const wanted = {
      name: name === DEFAULT_NAME ? clientName : `${clientName} ${name}`,
      attended: http?.attended ?? false,
      expires: http?.expires,
    };
    return {
      after: addHttp(text, name, { url, token: PLACEHOLDER }),
      complete: async (open) => addHttp(text, name, { url, token: await open.create(origin, wanted) }),
      remark:
        held === undefined
          ? 'The entry gets a new token in place of ccmcp_….'
          : 'A new token replaces the existing one.',
    };
  });
}

/** Of the settings, only the toolset is the client's own over HTTP; two say which hub is meant. */
function queryFor(flags: ReadonlyMap<SettingKey, string>): string {
  const stray = [...flags.keys()].find((key) => !['toolset', 'stateDir', 'store', 'auditLog'].includes(key));
  if (stray !== undefined)
    throw new Refusal(`${flagOf(stray)} is a setting of the hub over HTTP: pass it to claude-code-mcp hub.`);
  const toolset = flags.get('toolset');
  return toolset === undefined ? '' : `?toolset=${encodeURIComponent(toolset)}`;
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
      throw new Refusal(`The server named ${name} in ${title} is a different one; it was left unchanged.`);
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
    const { kind, scope } = rowOf(key);
    if (scope === 'hub')
      throw new Refusal(`${flagOf(key)} is an option of the hub: claude-code-mcp hub ${flagOf(key)} …`);
    if (kind.isSecret) {
      throw new Refusal(
        `${flagOf(key)} would end up in the client's file in plain text; set it as an environment variable instead.`,
      );
    }
    const parsed = kind.parse(written, host);
    return `${flagOf(key)}=${'value' in parsed ? kind.format(parsed.value, host) : written}`;
  });
}

function parse(direction: Direction, rest: readonly string[]): Choice {
  const { given, words }: ParsedFlags<typeof INSTALL_FLAGS.install> =
    direction === 'install'
      ? parseFlags(direction, INSTALL_FLAGS.install, rest)
      : parseFlags(direction, INSTALL_FLAGS.uninstall, rest);
  const [client, extra] = words;
  const { name = DEFAULT_NAME, print, yes } = given;
  if (client === undefined) throw new SettingsError(`${direction} needs a client: ${Object.keys(CLIENTS).join(', ')}.`);
  if (extra !== undefined) throw new SettingsError(`One client at a time; ${quote(extra)} is one too many.`);
  if (!/^[\w-]{1,64}$/.test(name))
    throw new SettingsError(`--name takes letters, digits, - and _, not ${quote(name)}.`);
  if (!isClient(client)) throw unknownClient(client);
  return { client, name, print: print === true, yes: yes === true, http: parseHttp(given) };
}

function parseHttp({ http, url, expires, ...given }: Given<typeof INSTALL_FLAGS.install>): Choice['http'] {
  const attended = given.attended === true;
  if (http === undefined) {
    if ((url ?? expires ?? (attended || undefined)) !== undefined)
      throw new SettingsError('--url, --attended and --expires are only valid with --http.');
    return undefined;
  }
  if (url !== undefined && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw new SettingsError('--url takes the address of the hub, such as https://hub.example.org.');
  checkExpiry(expires);
  return { url, attended, ...(expires !== undefined && { expires }) };
}

function isClient(word: string): word is ClientName {
  return Object.hasOwn(CLIENTS, word);
}

function unknownClient(word: string): SettingsError {
  const names = Object.keys(CLIENTS);
  const nearest = nearestName(word, names);
  return new SettingsError(
    `Unknown client ${quote(word)}; ${nearest === undefined ? `there are ${names.join(', ')}.` : `did you mean ${nearest}?`}`,
  );
}
