/**
 * The files of one session's transcript, read and written whole: `<id>.jsonl` is the conversation, and
 * `<id>/subagents/….jsonl` that of each sub-agent, with its metadata in `….meta.json` beside it.
 */

import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, realpath, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findSessionFile, isSessionId } from './session-places.ts';

/** A line of a transcript. Most have a `uuid`. */
export interface TranscriptLine {
  readonly type: string;
  readonly uuid?: string | undefined;
  readonly [field: string]: unknown;
}

export interface PartFile {
  /** Of a sub-agent, as the Agent SDK names it; the conversation itself has none. */
  readonly subpath: string | undefined;
  readonly file: string;
}

export interface ReadLines {
  readonly lines: TranscriptLine[];
  /** Where the next line starts. An unfinished one is left for later. */
  readonly end: number;
}

/** What the Agent SDK calls the sidecar of a sub-agent among its lines. */
const SIDECAR_TYPE = 'agent_metadata';
const EXTENSION = '.jsonl';

/** The files that this machine has of a session. */
export async function partFiles(configDir: string, sessionId: string): Promise<PartFile[]> {
  const file = await findSessionFile(configDir, sessionId);
  if (file === undefined) return [];
  const folder = file.slice(0, -EXTENSION.length);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const agents = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(EXTENSION))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .map((agentFile) => ({ file: agentFile, subpath: subpathOf(folder, agentFile) }));
  return [{ file, subpath: undefined }, ...agents];
}

/**
 * From a byte on, or from the start if the file has become shorter; lines that are not JSON are skipped, as Claude Code
 * does.
 */
export async function readLines(file: string, after = 0): Promise<ReadLines> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const from = after > size ? 0 : after;
    const buffer = Buffer.alloc(size - from);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, from);
    const whole = buffer.subarray(0, bytesRead);
    const end = whole.lastIndexOf('\n') + 1;
    return {
      lines: whole
        .toString('utf8', 0, end)
        .split('\n')
        .flatMap((line) => parsed(line)),
      end: from + end,
    };
  } finally {
    await handle.close();
  }
}

/** Every line of a part, and what is stored beside it. */
export async function readPart({ file, subpath }: PartFile): Promise<TranscriptLine[]> {
  const { lines } = await readLines(file);
  const sidecar = subpath === undefined ? undefined : await readFile(sidecarOf(file), 'utf8').catch(() => undefined);
  return sidecar === undefined ? lines : [...lines, ...parsed(sidecar, { type: SIDECAR_TYPE })];
}

/** Written where Claude Code looks for the session when it is resumed in this directory, replacing what is there. */
export async function writeParts(
  configDir: string,
  { sessionId, cwd }: { readonly sessionId: string; readonly cwd: string },
  parts: ReadonlyMap<string | undefined, readonly TranscriptLine[]>,
): Promise<void> {
  if (!isSessionId(sessionId)) throw new Error(`${sessionId} is not a session id.`);
  const folder = path.join(configDir, 'projects', await projectKey(cwd));
  for (const [subpath, lines] of parts) {
    const file = path.join(folder, subpath === undefined ? sessionId : agentFile(sessionId, subpath)) + EXTENSION;
    const sidecar = lines.findLast(({ type }) => type === SIDECAR_TYPE);
    const text = lines.filter(({ type }) => type !== SIDECAR_TYPE).map((line) => `${JSON.stringify(line)}\n`);
    await replaceFile(file, text.join(''));
    if (subpath !== undefined && sidecar) {
      const { type: _, ...fields } = sidecar;
      await replaceFile(sidecarOf(file), JSON.stringify(fields));
    }
  }
}

function subpathOf(folder: string, file: string): string {
  return path.relative(folder, file).slice(0, -EXTENSION.length).split(path.sep).join('/');
}

/** It comes from a database that others write to, so it must not lead anywhere else. */
function agentFile(sessionId: string, subpath: string): string {
  const steps = subpath.split('/');
  if (steps.some((step) => step === '' || step === '.' || step === '..' || /[\\\0:]/.test(step)))
    throw new Error(`${JSON.stringify(subpath)} is not a part of a transcript.`);
  return path.join(sessionId, ...steps);
}

function sidecarOf(file: string): string {
  return `${file.slice(0, -EXTENSION.length)}.meta.json`;
}

/** Only the Agent SDK knows how Claude Code names the folder of a directory: it queries its store by that name. */
async function projectKey(cwd: string): Promise<string> {
  const { listSessions } = await import('@anthropic-ai/claude-agent-sdk');
  let key: string | undefined;
  await listSessions({
    dir: await realpath(cwd),
    includeWorktrees: false,
    sessionStore: {
      append: async () => undefined,
      load: async () => null,
      listSessions: async (projectKey) => {
        key = projectKey;
        return [];
      },
    },
  });
  if (key === undefined) throw new Error(`The Agent SDK does not say where the transcripts of ${cwd} are.`);
  return key;
}

async function replaceFile(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, file);
}

function parsed(text: string, extra: object = {}): TranscriptLine[] {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return [];
    const line: Record<string, unknown> = { ...extra, ...value };
    return typeof line['type'] === 'string' ? [line as TranscriptLine] : [];
  } catch {
    return [];
  }
}
