/** The sessions Claude Code has on this machine: those of every client, and of terminals. */

import { createReadStream } from 'node:fs';
import { readdir, stat, readFile, rm, open, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { SDKSessionInfo } from '@anthropic-ai/claude-agent-sdk';
import { findSessionFile, isSessionId, transcriptsOf, placesNewestFirst, type SessionPlace } from './session-places.ts';

/** What a transcript says about the turns that were taken in it. */
export interface TranscriptTally {
  readonly turns: number;
  /** Whether it cost more than is written down, by an unknown amount. */
  readonly hasUnwrittenCost: boolean;
}

export interface DiskSession {
  readonly sessionId: string;
  /** As the session reports it, unverified: the directory may be gone, or not the one that was requested. */
  readonly projectDirectory: string | undefined;
  readonly displayText: string;
  readonly lastModified: number;
  readonly createdAt?: number;
}

export interface FoundSession {
  readonly sessionId: string;
  /** Claude Code resumes the session only from here. */
  readonly cwd: string | undefined;
  readonly file: string | undefined;
}

export type Within = (directory: string, sessionId: string) => boolean;

export interface ListRequest {
  readonly projectDirectory?: string | undefined;
  readonly limit: number;
  readonly offset: number;
  /** Only sessions in directories for which this holds. */
  readonly within?: Within | undefined;
}

export interface Transcripts {
  /** Newest first. Sessions skipped by `offset` are read too: about 2.5 ms per session. */
  list(request: ListRequest): Promise<DiskSession[]>;
  find(sessionId: string): Promise<FoundSession | undefined>;
  /** Whether a process that was killed left a conversation to resume; if not, its id can be reused. */
  salvage(sessionId: string): Promise<boolean>;
  /** Whether Claude Code has written this message, as an entry or in one. */
  mentions(sessionId: string, messageId: string): Promise<boolean>;
  /**
   * Whether Claude Code has written any transcript beside the session's own since then: after `/clear` it continues
   * under another id.
   */
  isProjectWrittenSince(sessionId: string, at: number): Promise<boolean>;
  /** Where a process that resumes or forks the session starts counting. */
  lastCostUsd(sessionId: string): Promise<number>;
  tally(sessionId: string): Promise<TranscriptTally>;
  /** Whether the session can be resumed at this message; Claude Code accepts any entry with a uuid. */
  messageExists(sessionId: string, uuid: string): Promise<boolean>;
}

/** The Agent SDK takes the directory from CLAUDE_CONFIG_DIR of this process: `configDir` must be the same. */
export function createTranscripts({ configDir }: { readonly configDir: string }): Transcripts {
  return {
    async list({ projectDirectory, limit, offset, within }) {
      // To the SDK, 0 means no limit, and it then holds every transcript in memory at once.
      if (limit <= 0) return [];
      if (within && projectDirectory === undefined) return listWithin(configDir, within, offset + limit, offset);
      const { listSessions } = await import('@anthropic-ai/claude-agent-sdk');
      const place = projectDirectory === undefined ? {} : { dir: projectDirectory, includeWorktrees: false };
      const listed = (await listSessions({ ...place, limit, offset })).map(toDiskSession);
      return within ? listed.filter((session) => lies(session, within)) : listed;
    },

    async find(sessionId) {
      if (!isSessionId(sessionId)) return undefined;
      const { getSessionInfo } = await import('@anthropic-ai/claude-agent-sdk');
      const [info, file] = await Promise.all([getSessionInfo(sessionId), findSessionFile(configDir, sessionId)]);
      return info && { sessionId, cwd: info.cwd, file };
    },

    async salvage(sessionId) {
      return (await this.find(sessionId)) !== undefined || salvageTranscripts(configDir, sessionId);
    },

    async mentions(sessionId, messageId) {
      const file = await findSessionFile(configDir, sessionId);
      return file !== undefined && fileIncludes(file, messageId);
    },

    async isProjectWrittenSince(sessionId, at) {
      const file = await findSessionFile(configDir, sessionId);
      if (file === undefined) return false;
      const directory = path.dirname(file);
      const names = (await readdir(directory)).filter((name) => name.endsWith('.jsonl'));
      const found = await Promise.all(names.map((name) => stat(path.join(directory, name))));
      // A full disk still has room for an empty file.
      return found.some(({ size, mtimeMs }) => size > 0 && mtimeMs >= at);
    },

    async lastCostUsd(sessionId) {
      const file = await findSessionFile(configDir, sessionId);
      if (file === undefined) return 0;
      // Claude Code cannot read it either, and says so when it resumes.
      return readLastCostUsd(file, sessionId).catch(() => 0);
    },

    async tally(sessionId) {
      const file = await findSessionFile(configDir, sessionId);
      if (file === undefined) return { turns: 0, hasUnwrittenCost: false };
      return readTally(file).catch(() => ({ turns: 0, hasUnwrittenCost: true }));
    },

    async messageExists(sessionId, uuid) {
      const file = isSessionId(uuid) ? await findSessionFile(configDir, sessionId) : undefined;
      if (file === undefined) return false;
      return fileIncludes(file, `"uuid":"${uuid}"`).catch(() => false);
    },
  };
}

/** As many as the SDK reads at a time. */
const BATCH_SIZE = 32;

/** Only what will be shown is read in full: with thousands of sessions outside, the SDK would take seconds to list. */
async function listWithin(configDir: string, within: Within, end: number, offset: number): Promise<DiskSession[]> {
  const found = new Map<string, DiskSession>();
  let batch: SessionPlace[] = [];
  const readBatch = async (): Promise<void> => {
    for (const session of await Promise.all(batch.map(read)))
      if (session && lies(session, within) && !found.has(session.sessionId)) found.set(session.sessionId, session);
    batch = [];
  };
  for await (const place of placesNewestFirst(configDir)) {
    if (!within(place.directory, place.sessionId)) continue;
    batch.push(place);
    if (batch.length >= Math.min(BATCH_SIZE, end - found.size)) await readBatch();
    if (found.size >= end) break;
  }
  await readBatch();
  return [...found.values()].slice(offset, end);
}

/** Given the directory, the SDK does not have to search all projects; for a symlinked one it does. */
async function read({ sessionId, directory }: SessionPlace): Promise<DiskSession | undefined> {
  const { getSessionInfo } = await import('@anthropic-ai/claude-agent-sdk');
  const info = (await getSessionInfo(sessionId, { dir: directory })) ?? (await getSessionInfo(sessionId));
  return info && toDiskSession(info);
}

function lies({ sessionId, projectDirectory }: DiskSession, within: Within): boolean {
  return projectDirectory !== undefined && within(projectDirectory, sessionId);
}

function toDiskSession(info: SDKSessionInfo): DiskSession {
  return {
    sessionId: info.sessionId,
    projectDirectory: info.cwd,
    displayText: displayText(info.summary),
    lastModified: info.lastModified,
    ...(info.createdAt === undefined ? {} : { createdAt: info.createdAt }),
  };
}

const MAX_DISPLAY_LENGTH = 200;

/** One line that is safe to show in a list: control characters would reach the user's terminal. */
export function displayText(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (line.length <= MAX_DISPLAY_LENGTH) return line;
  const halfOfPair = /[\uD800-\uDBFF]$/;
  return `${line.slice(0, MAX_DISPLAY_LENGTH - 1).replace(halfOfPair, '')}…`;
}

/**
 * Claude Code appends `{"type":"cost-state","sessionId":…,"totalCostUSD":…}` when it leaves a session, not after each
 * turn and not when it is killed. A process that resumes or forks the session continues from the last such entry. 0 if
 * there is none, as for Claude Code itself.
 */
async function readLastCostUsd(transcript: string, sessionId: string): Promise<number> {
  for await (const line of linesFromEnd(transcript, '"type":"cost-state"')) {
    const cost = costIn(line, sessionId);
    if (cost !== undefined) return cost;
  }
  return 0;
}

/** Marks of messages that Claude Code adds by itself, and of those of sub-agents. */
const UNCOUNTED = ['isSidechain', 'isMeta', 'isCompactSummary', 'isVisibleInTranscriptOnly'];

/**
 * How many turns there are, counted as Claude Code reports them: one for each prompt and one for each message that went
 * back to the model, such as a tool's result. And whether the cost of some answers is in no such entry: their process was
 * killed, or is still running. An entry covers what its own process did, from `startTime` on, and what was recorded before.
 */
async function readTally(transcript: string): Promise<TranscriptTally> {
  const lines = createInterface({ input: createReadStream(transcript), crlfDelay: Infinity });
  let unwrittenSince: number | undefined;
  let isIncomplete = false;
  let turns = 0;
  for await (const line of lines) {
    if (!/"type":"(?:user|assistant|cost-state)"/.test(line)) continue;
    const entry = (parse(line) ?? {}) as Record<string, unknown>;
    if (entry['type'] === 'cost-state') {
      isIncomplete ||= unwrittenSince !== undefined && unwrittenSince < Number(entry['startTime'] ?? 0);
      unwrittenSince = undefined;
    } else if (entry['type'] === 'assistant') {
      // An answer that a fork took over from its parent is in the parent's total.
      if (entry['forkedFrom'] === undefined) unwrittenSince ??= Date.parse(String(entry['timestamp']));
    } else if (entry['type'] === 'user' && !UNCOUNTED.some((mark) => entry[mark] === true)) turns++;
  }
  return { turns, hasUnwrittenCost: isIncomplete || unwrittenSince !== undefined };
}

function costIn(line: string, sessionId: string): number | undefined {
  const entry = parse(line);
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { type, sessionId: owner, totalCostUSD: cost } = entry as Record<string, unknown>;
  if (type !== 'cost-state' || owner !== sessionId) return undefined;
  return typeof cost === 'number' && Number.isFinite(cost) && cost >= 0 ? cost : undefined;
}

function parse(line: string): unknown {
  try {
    // A machine crash can leave zeros before the next entry; Claude Code skips them too.
    return JSON.parse(line.slice(line.search(/[^\0]/)));
  } catch {
    return undefined;
  }
}

/** Only a few lines precede the first message; a longer file is more than a beginning, and is never removed. */
const MAX_BEGINNING_BYTES = 256 * 1024;

/**
 * Whether one of the session's files contains a message. Claude Code (2.1.325) does not resume a file without one, and
 * does not start another session with its id while the file exists: such files are removed.
 */
async function salvageTranscripts(configDir: string, sessionId: string): Promise<boolean> {
  const begun: string[] = [];
  for (const { file, size } of await transcriptsOf(configDir, sessionId)) {
    if (size > MAX_BEGINNING_BYTES || (await readFile(file, 'utf8')).split('\n').some(isMessage)) return true;
    begun.push(file);
  }
  for (const file of begun) await rm(file, { force: true });
  return false;
}

function isMessage(line: string): boolean {
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry !== 'object' || entry === null || !('type' in entry)) return false;
    return entry.type === 'user' || entry.type === 'assistant';
  } catch {
    // Cut off in the middle of a line.
    return false;
  }
}

/* A file is searched from its end, so that a transcript of any size costs little memory. */

const WINDOW_BYTES = 256 * 1024;
const LINE_REACH_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** The lines that contain `text`, last one first. Overlong ones are skipped. */
export async function* linesFromEnd(file: string, text: string): AsyncGenerator<string> {
  const handle = await open(file, 'r');
  try {
    for await (const offset of offsetsFromEnd(handle, Buffer.from(text))) {
      const line = await lineAround(handle, offset);
      if (line !== undefined) yield line;
    }
  } finally {
    await handle.close();
  }
}

/** Where the last occurrence begins; -1 if there is none. */
async function lastOffsetIn(file: string, text: string): Promise<number> {
  const handle = await open(file, 'r');
  try {
    const last = await offsetsFromEnd(handle, Buffer.from(text)).next();
    return last.done === true ? -1 : last.value;
  } finally {
    await handle.close();
  }
}

export async function fileIncludes(file: string, text: string): Promise<boolean> {
  return (await lastOffsetIn(file, text)) >= 0;
}

async function* offsetsFromEnd(handle: FileHandle, needle: Buffer): AsyncGenerator<number> {
  // A match may start in one window and end in the next.
  const overlap = needle.length - 1;
  const buffer = Buffer.allocUnsafe(WINDOW_BYTES + overlap);
  let end = (await handle.stat()).size;
  while (end > 0) {
    const start = Math.max(0, end - WINDOW_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, end - start + overlap, start);
    const window = buffer.subarray(0, bytesRead);
    for (let at = lastBefore(window, needle, bytesRead); at >= 0; at = lastBefore(window, needle, at)) yield start + at;
    end = start;
  }
}

/** To lastIndexOf a negative offset means the end. */
function lastBefore(window: Buffer, needle: Buffer, end: number): number {
  return end === 0 ? -1 : window.lastIndexOf(needle, end - 1);
}

async function lineAround(handle: FileHandle, offset: number): Promise<string | undefined> {
  const start = Math.max(0, offset - LINE_REACH_BYTES);
  const length = offset - start + LINE_REACH_BYTES;
  const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, start);
  const bytes = buffer.subarray(0, bytesRead);
  const lineStart = bytes.lastIndexOf(NEWLINE, offset - start) + 1;
  const newline = bytes.indexOf(NEWLINE, offset - start);
  const isCutAtStart = lineStart === 0 && start > 0;
  const isCutAtEnd = newline < 0 && bytesRead === length;
  if (isCutAtStart || isCutAtEnd) return undefined;
  return bytes.toString('utf8', lineStart, newline < 0 ? bytesRead : newline);
}
