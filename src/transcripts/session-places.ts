/** Maps sessions to directories cheaply: with titles it costs the Agent SDK 1 to 2 ms per session. */

import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface SessionPlace {
  readonly sessionId: string;
  /** As the session reports it, unverified. */
  readonly directory: string;
}

interface TranscriptFile {
  readonly sessionId: string;
  readonly file: string;
  readonly size: number;
  readonly lastModified: number;
}

/** As far from either end as the Agent SDK looks. */
const REACH_BYTES = 64 * 1024;
/**
 * Thousands of small reads cost the thread pool ten times as much, so they are done here, yielding to others in
 * between.
 */
const SLICE_MS = 5;

/** Newest first; sessions that do not record their directory are skipped. */
export async function* placesNewestFirst(configDir: string): AsyncGenerator<SessionPlace> {
  const pace = new Pace();
  const transcripts: TranscriptFile[] = [];
  const projects = path.join(configDir, 'projects');
  for (const project of namesIn(projects)) {
    const folder = path.join(projects, project);
    for (const name of namesIn(folder)) {
      await pace.keep();
      const transcript = transcriptIn(folder, name);
      if (transcript) transcripts.push(transcript);
    }
  }
  transcripts.sort((a, b) => b.lastModified - a.lastModified);
  const buffer = Buffer.allocUnsafe(REACH_BYTES);
  for (const { sessionId, file, size } of transcripts) {
    await pace.keep();
    const directory = directoryIn(file, size, buffer);
    if (directory !== undefined) yield { sessionId, directory };
  }
}

class Pace {
  #since = performance.now();

  async keep(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await nextTurn();
    this.#since = performance.now();
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function transcriptIn(folder: string, name: string): TranscriptFile | undefined {
  const sessionId = path.basename(name, '.jsonl');
  if (sessionId === name || !isSessionId(sessionId)) return undefined;
  const file = path.join(folder, name);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats?.isFile() !== true || stats.size === 0) return undefined;
  return { sessionId, file, size: stats.size, lastModified: stats.mtimeMs };
}

/** A session that moved says so near its end; otherwise its first entries tell. */
function directoryIn(file: string, size: number, buffer: Buffer): string | undefined {
  let handle: number | undefined;
  try {
    handle = openSync(file, 'r');
    const head = buffer.subarray(0, readSync(handle, buffer, 0, REACH_BYTES, 0));
    const first = textAt(head, head.indexOf('"cwd":'));
    const tail =
      size <= REACH_BYTES ? head : buffer.subarray(0, readSync(handle, buffer, 0, REACH_BYTES, size - REACH_BYTES));
    return textAt(tail, tail.lastIndexOf('"relocatedCwd":')) ?? first;
  } catch {
    return undefined;
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

const FIELD = /^"\w+": ?("(?:[^"\\]|\\.)*")/;
const MAX_FIELD_LENGTH = 8 * 1024;

function textAt(bytes: Buffer, offset: number): string | undefined {
  if (offset < 0) return undefined;
  const [, quoted] = FIELD.exec(bytes.toString('utf8', offset, offset + MAX_FIELD_LENGTH)) ?? [];
  return quoted === undefined ? undefined : (JSON.parse(quoted) as string);
}

/** Lower case only: where file names ignore case, a second spelling would open the same transcript twice. */
const SESSION_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Nothing else may become part of a path. */
export function isSessionId(value: string): boolean {
  return SESSION_ID.test(value);
}

export async function findSessionFile(configDir: string, sessionId: string): Promise<string | undefined> {
  const candidates = (await transcriptsOf(configDir, sessionId)).filter(({ size }) => size > 0);
  // A session that moved to another directory may have left a file behind in the first.
  return candidates.toSorted((a, b) => b.lastModified - a.lastModified)[0]?.file;
}

/** Every file of the session, in whichever project, empty ones too. */
export async function transcriptsOf(configDir: string, sessionId: string): Promise<Transcript[]> {
  if (!isSessionId(sessionId)) return [];
  const projects = path.join(configDir, 'projects');
  const names = await readdir(projects).catch(() => []);
  const candidates = await Promise.all(
    names.map((name) => transcriptAt(path.join(projects, name, `${sessionId}.jsonl`))),
  );
  return candidates.filter((candidate) => candidate !== undefined);
}

export interface Transcript {
  readonly file: string;
  readonly lastModified: number;
  /** In bytes. */
  readonly size: number;
}

async function transcriptAt(file: string): Promise<Transcript | undefined> {
  const stats = await stat(file).catch(() => undefined);
  return stats?.isFile() ? { file, lastModified: stats.mtimeMs, size: stats.size } : undefined;
}
