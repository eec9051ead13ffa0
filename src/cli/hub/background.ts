import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, mkdir, open, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { HUB_NODE_FLAGS, type HubRecord } from '../../config/hub-record.ts';
import { type Secrets, SECRETS_VARIABLE, secretsOf, withoutSecrets } from '../../config/secret-variables.ts';
import { openOwnFile } from '../../platform/own-file.ts';
import { printableLines } from '../../text/invisible.ts';
import { isAlive } from '../../transcripts/session-lock.ts';
import { askHub, HubRefused, HubUnavailable } from '../../transports/attach/connect-hub.ts';
import { untilInterrupted } from '../terminal/terminal.ts';
import type { HubCommandContext } from './run-hub.ts';
import { hubState, requireHub } from './running-hub.ts';

/** One older file is kept. */
const ROTATE_AT_BYTES = 5 * 1024 * 1024;
const TAIL_BYTES = 64 * 1024;

export function hubLogFile(stateDir: string): string {
  return path.join(stateDir, 'hub.log');
}

/** For a hub that is started in the background. */
export async function openHubLog(stateDir: string): Promise<FileHandle> {
  const file = hubLogFile(stateDir);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const size = (await stat(file).catch(() => undefined))?.size ?? 0;
  if (size > ROTATE_AT_BYTES) await rename(file, `${file}.1`);
  return openOwnFile(file, 'append');
}

/** The last lines from `from` on, and where they end. */
export async function readLog(file: string, from?: number): Promise<{ text: string; end: number }> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const start = from === undefined || from > size ? Math.max(0, size - TAIL_BYTES) : from;
    const buffer = Buffer.alloc(size - start);
    await handle.read(buffer, 0, buffer.length, start);
    return { text: buffer.toString('utf8'), end: size };
  } finally {
    await handle.close();
  }
}

const SHOWN_LINES = 200;
const READ_AGAIN_MS = 300;

export async function showLogs({ settings }: HubCommandContext, options: readonly string[]): Promise<number> {
  const file = hubLogFile(settings.stateDir);
  let read: Awaited<ReturnType<typeof readLog>>;
  try {
    read = await readLog(file);
  } catch {
    process.stderr.write(`There is no log yet: ${file} is written by "hub start" and by the installed service.\n`);
    return 1;
  }
  const lines = read.text.split('\n').slice(-SHOWN_LINES - 1);
  process.stdout.write(printableLines(lines.join('\n')));
  if (options.length === 0) return 0;
  return untilInterrupted(async (signal) => {
    for (let { end } = read; ;) {
      await pause(READ_AGAIN_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return 0;
      const more = await readLog(file, end);
      process.stdout.write(printableLines(more.text));
      end = more.end;
    }
  });
}

const START_MS = 15_000;
const STOP_MS = 12_000;
const LOOK_AGAIN_MS = 50;

export async function startInBackground(context: HubCommandContext): Promise<number> {
  return start(context, flagsOf(context.argv));
}

export async function stopHub({ settings }: HubCommandContext, options: readonly string[]): Promise<number> {
  const record = await requireHub(settings.stateDir, '');
  if (!record) return 1;
  const keeps = options.includes('--keep');
  if (!(await stop(record.pid, settings.stateDir, keeps ? 'leave' : 'stop')).stopped) return 1;
  process.stdout.write(keeps ? 'The hub has stopped; its sessions go on.\n' : 'The hub has stopped.\n');
  return 0;
}

/** With the flags and secrets it was started with, unless other flags are given. */
export async function restartHub(context: HubCommandContext): Promise<number> {
  const { stateDir } = context.settings;
  const state = await hubState(stateDir);
  const given = flagsOf(context.argv);
  if (state.kind !== 'running') return start(context, given);
  const { argv = [], isService } = state.status;
  if (isService && given.length === 0) return restartService(state.record, stateDir);
  const { stopped, secrets } = await stop(state.record.pid, stateDir, 'leave');
  if (!stopped) return 1;
  return given.length > 0 ? start(context, given) : start(context, flagsOf(argv), secrets);
}

/** Its service manager restarts it, with the flags and variables of the service. */
async function restartService(record: HubRecord, stateDir: string): Promise<number> {
  await askHub(record, stateDir, 'restart').catch(ignoreUnavailable);
  for (const deadline = Date.now() + STOP_MS + START_MS; Date.now() < deadline; await pause(LOOK_AGAIN_MS)) {
    const state = await hubState(stateDir);
    if (state.kind !== 'running' || state.record.pid === record.pid) continue;
    process.stdout.write(`The hub is running: ${state.record.url} (pid ${String(state.record.pid)})\n`);
    return 0;
  }
  process.stderr.write('The service manager has not restarted the hub; check its status.\n');
  return 1;
}

async function stop(
  pid: number,
  stateDir: string,
  how: 'stop' | 'leave',
): Promise<{ stopped: boolean; secrets?: Secrets | undefined }> {
  const record = await requireHub(stateDir);
  const reply = record && (await askHub<{ secrets?: Secrets }>(record, stateDir, how).catch(ignoreUnavailable));
  for (const deadline = Date.now() + STOP_MS; Date.now() < deadline; await pause(LOOK_AGAIN_MS))
    if (!isAlive(pid)) return { stopped: true, secrets: reply?.secrets };
  process.stderr.write(`The hub (pid ${String(pid)}) did not stop within ${String(STOP_MS / 1000)} s.\n`);
  return { stopped: false };
}

async function start(
  { settings, program, env, homedir }: HubCommandContext,
  flags: readonly string[],
  earlier: Secrets = {},
): Promise<number> {
  const { stateDir } = settings;
  const before = await hubState(stateDir);
  if (before.kind === 'running') {
    process.stdout.write(`The hub is already running: ${before.record.url} (pid ${String(before.record.pid)})\n`);
    return 0;
  }
  const log = await openHubLog(stateDir);
  const { size } = await log.stat();
  const { argv } = withoutSecrets({ argv: flags, env });
  const child = spawn(process.execPath, [...HUB_NODE_FLAGS, program, 'hub', ...argv], {
    cwd: homedir,
    env: { ...env, [SECRETS_VARIABLE]: 'stdin' },
    detached: true,
    windowsHide: true,
    stdio: ['pipe', log.fd, log.fd],
  });
  // If it does not start, its log says why.
  child.stdin?.on('error', () => undefined).end(JSON.stringify({ ...earlier, ...secretsOf(settings) }));
  const ended = once(child, 'exit').then(() => 'ended' as const);
  await log.close();
  for (const deadline = Date.now() + START_MS; Date.now() < deadline;) {
    const state = await hubState(stateDir);
    if (state.kind === 'running') {
      child.unref();
      process.stdout.write(`The hub is running: ${state.record.url} (pid ${String(state.record.pid)})\n`);
      return 0;
    }
    if ((await Promise.race([ended, pause(LOOK_AGAIN_MS)])) === 'ended') break;
  }
  const { text } = await readLog(hubLogFile(stateDir), size);
  process.stderr.write(printableLines(`The hub did not start. Its log says:\n${text}`));
  return 1;
}

/** Everything but the words of the command. */
export function flagsOf(argv: readonly string[]): string[] {
  const words = new Set(['hub', 'start', 'restart', 'install', 'uninstall']);
  return argv.filter((argument, index) => {
    const isWord = words.has(argument) && !(argv[index - 1] ?? '').startsWith('--');
    if (isWord) words.delete(argument);
    return !isWord;
  });
}

function ignoreUnavailable(error: unknown): undefined {
  if (error instanceof HubRefused || !(error instanceof HubUnavailable)) throw error;
}
