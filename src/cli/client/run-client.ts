import path from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import type { Settings } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { DomainError } from '../../errors/errors.ts';
import type { StartBody, TurnAnswer } from '../../schema/api.ts';
import { printable, printableLines } from '../../text/invisible.ts';
import { CLIENT_COMMAND_FLAGS, START_MODES } from '../commands.ts';
import { existingDirectory, parseFlags, requireWord } from '../parse-flags.ts';
import type { HubClientContext } from '../serve/find-hub.ts';
import { Screen, type Terminal } from '../terminal/terminal.ts';
import { type ClientContext, NEEDS_PERSON } from './client.ts';
import { ApiFailure, HubUnreachable, openHub } from './hub-api.ts';
import { allowRequest, denyRequest, showInbox } from './inbox.ts';
import { findSession, followSession, listSessions, showSession } from './sessions.ts';

export interface StartOptions {
  readonly cwd: string | undefined;
  readonly model: string | undefined;
  readonly permissionMode: StartBody['permissionMode'];
  readonly worktree: boolean;
  readonly follow: boolean;
}

/** `start`: a new session in this directory, or in the one that `--cwd` names. */
async function startSession(client: ClientContext, words: readonly string[], options: StartOptions): Promise<number> {
  checkMayDrive(client);
  const { model, permissionMode, worktree, follow } = options;
  const body = {
    prompt: await promptOf('start', words),
    cwd: directoryOf(options.cwd, client),
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(worktree && { advanced: { workspace: { type: 'worktree' as const } } }),
  };
  const answer = await whileShowing(client, 'Claude Code is starting', () =>
    client.api.post<TurnAnswer>('/api/v1/sessions', body),
  );
  return turned(client, answer, 'Started', follow);
}

/** `send`: the next message. A working session takes it up when it can. */
async function sendMessage(
  client: ClientContext,
  id: string,
  words: readonly string[],
  { follow }: { follow: boolean },
): Promise<number> {
  checkMayDrive(client);
  const prompt = await promptOf('send', words);
  const { sessionId } = await findSession(client, id);
  const answer = await whileShowing(client, 'sending', () =>
    client.api.post<TurnAnswer>(`/api/v1/sessions/${sessionId}/messages`, { prompt }),
  );
  return turned(client, answer, 'Sent to', follow);
}

async function turned(
  client: ClientContext,
  { session, warnings = [] }: TurnAnswer,
  did: string,
  follow: boolean,
): Promise<number> {
  if (client.json && !follow) client.print({ ...session, ...(warnings.length > 0 && { warnings }) });
  for (const warning of warnings) client.terminal.writeError(printable`Note: ${warning}\n`);
  if (follow) return followSession(client, session.sessionId, { untilRest: true });
  client.say(`${did} ${session.sessionId}. To watch it: claude-code-mcp follow ${session.sessionId.slice(0, 8)}`);
  return 0;
}

async function whileShowing<T>({ terminal, json }: ClientContext, words: string, work: () => Promise<T>): Promise<T> {
  const screen = new Screen(terminal);
  if (!json) screen.now(words);
  try {
    return await work();
  } finally {
    screen.now('');
  }
}

/** The user's own sessions; what a token may do, the hub says. */
function checkMayDrive({ terminal, hasToken }: ClientContext): void {
  if (!terminal.canAsk && !hasToken) throw new DomainError('PERMISSION_DENIED', NEEDS_PERSON);
}

function modeOf(given: string | undefined): StartBody['permissionMode'] {
  return given === undefined ? undefined : requireWord('--permission-mode cannot be', given, START_MODES);
}

/** Of this machine, unless the hub is another one's. */
function directoryOf(given: string | undefined, { cwd }: ClientContext): string {
  if (cwd !== undefined) return existingDirectory('--cwd', path.resolve(cwd, given ?? '.'));
  if (given === undefined) throw new SettingsError('start needs --cwd with --url: a directory of that machine.');
  return given;
}

async function promptOf(command: 'start' | 'send', words: readonly string[]): Promise<string> {
  const prompt = words.length === 1 && words[0] === '-' ? await readAll(process.stdin) : words.join(' ');
  expectText(command, prompt);
  return prompt;
}

function expectText(command: 'start' | 'send', text: string): void {
  if (text.trim() !== '') return;
  const what = command === 'start' ? 'a prompt' : 'a text';
  throw new SettingsError(
    `${command} needs ${what}, or "-" to read it from stdin; see claude-code-mcp ${command} --help.`,
  );
}

export type ClientCommand = keyof typeof CLIENT_COMMAND_FLAGS;

const INTERRUPTED = 130;

export interface RunClientOptions {
  readonly settings: Settings;
  readonly source: HubClientContext;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Runs a command against a hub. Returns the exit code. */
export async function runClient(
  command: ClientCommand,
  rest: readonly string[],
  options: RunClientOptions,
): Promise<number> {
  const { terminal } = options;
  try {
    return await carryOut(command, rest, options);
  } catch (error) {
    if (error instanceof ApiFailure) terminal.writeError(printableLines(`claude-code-mcp: ${error.message}\n`));
    else if (error instanceof HubUnreachable)
      terminal.writeError(printable`claude-code-mcp: The hub cannot be reached: ${error.message}\n`);
    else if (!options.signal.aborted) throw error;
    return options.signal.aborted ? INTERRUPTED : 1;
  }
}

async function carryOut(command: ClientCommand, rest: readonly string[], options: RunClientOptions): Promise<number> {
  switch (command) {
    case 'inbox': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.inbox, rest);
      expectWords(command, words, []);
      return showInbox(clientFor(command, given, options), { watch: given.watch === true });
    }
    case 'sessions': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.sessions, rest);
      expectWords(command, words, []);
      return listSessions(clientFor(command, given, options), { all: given.all === true });
    }
    case 'show': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.show, rest);
      const [id] = expectWords(command, words, ['session id']);
      return showSession(clientFor(command, given, options), id);
    }
    case 'follow': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.follow, rest);
      const [id] = expectWords(command, words, ['session id']);
      return followSession(clientFor(command, given, options), id, { untilRest: given['until-rest'] === true });
    }
    case 'start': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.start, rest);
      expectText(command, words.join(' '));
      const permissionMode = modeOf(given['permission-mode']);
      return startSession(clientFor(command, given, options), words, {
        cwd: given.cwd,
        model: given.model,
        permissionMode,
        worktree: given.worktree === true,
        follow: given.follow === true,
      });
    }
    case 'send': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.send, rest);
      const [id, ...text] = words;
      if (id === undefined) throw new SettingsError('send needs a session id; see claude-code-mcp send --help.');
      expectText(command, text.join(' '));
      return sendMessage(clientFor(command, given, options), id, text, { follow: given.follow === true });
    }
    case 'allow': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.allow, rest);
      const [id] = expectWords(command, words, ['request id']);
      const { digest, always = false, confirm } = given;
      return allowRequest(clientFor(command, given, options), id, { digest, always, confirm });
    }
    case 'deny': {
      const { given, words } = parseFlags(command, CLIENT_COMMAND_FLAGS.deny, rest);
      const [id] = expectWords(command, words, ['request id']);
      return denyRequest(clientFor(command, given, options), id, given.message);
    }
  }
}

function clientFor(
  command: ClientCommand,
  { json: asked, url }: { readonly json?: true; readonly url?: string },
  { settings, source, terminal, signal }: RunClientOptions,
): ClientContext {
  const json = asked === true;
  const { api, hasToken } = openHub({ command, settings, source, url, isInteractive: terminal.canAsk });
  return {
    ...{ api, hasToken, json, terminal, signal, cwd: url === undefined ? source.cwd : undefined },
    now: Date.now,
    say: (text) => {
      if (!json) terminal.write(`${text}\n`);
    },
    print: (value) => terminal.write(`${JSON.stringify(value, null, 2)}\n`),
  };
}

/** Exactly these words after the command. */
function expectWords<const Names extends readonly string[]>(
  command: string,
  words: readonly string[],
  names: Names,
): { [Index in keyof Names]: string } {
  const missing = names[words.length];
  if (missing !== undefined)
    throw new SettingsError(`${command} needs a ${missing}; see claude-code-mcp ${command} --help.`);
  const extra = words[names.length];
  if (extra !== undefined) throw new SettingsError(printable`${command} does not take ${JSON.stringify(extra)}.`);
  return [...words] as { [Index in keyof Names]: string };
}
