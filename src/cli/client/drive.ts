import path from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { SettingsError } from '../../config/settings-error.ts';
import { DomainError } from '../../errors/errors.ts';
import type { StartBody, TurnAnswer } from '../../schema/api.ts';
import { printable } from '../../text/invisible.ts';
import { Screen } from '../terminal/screen.ts';
import { NEEDS_PERSON, type ClientContext } from './client.ts';
import { findSession, followSession } from './sessions.ts';

export interface StartOptions {
  readonly cwd: string | undefined;
  readonly model: string | undefined;
  readonly permissionMode: string | undefined;
  readonly worktree: boolean;
  readonly follow: boolean;
}

/** `start`: a new session in this directory, or in the one that `--cwd` names. */
export async function startSession(
  client: ClientContext,
  words: readonly string[],
  options: StartOptions,
): Promise<number> {
  checkMayDrive(client);
  const { model, permissionMode, worktree, follow } = options;
  const body = {
    prompt: await promptOf('start', words),
    cwd: directoryOf(options.cwd, client),
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode: permissionMode as StartBody['permissionMode'] }),
    ...(worktree && { advanced: { workspace: { type: 'worktree' as const } } }),
  };
  const answer = await whileShowing(client, 'Claude Code is starting', () =>
    client.api.post<TurnAnswer>('/api/v1/sessions', body),
  );
  return turned(client, answer, 'Started', follow);
}

/** `send`: the next message. A working session takes it up when it can. */
export async function sendMessage(
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

/** Of this machine, unless the hub is another one's. */
function directoryOf(given: string | undefined, { cwd }: ClientContext): string {
  if (cwd !== undefined) return path.resolve(cwd, given ?? '.');
  if (given === undefined) throw new SettingsError('start needs --cwd with --url: a directory of that machine.');
  return given;
}

async function promptOf(command: string, words: readonly string[]): Promise<string> {
  const prompt = words.length === 1 && words[0] === '-' ? await readAll(process.stdin) : words.join(' ');
  if (prompt.trim() === '')
    throw new SettingsError(
      `${command} needs a text, or "-" to read it from stdin; see claude-code-mcp ${command} --help.`,
    );
  return prompt;
}
