import { createHash } from 'node:crypto';
import { lstat, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { FileBefore } from '../../driver/translate.ts';

/** Larger files are compared by size and time only. */
const MAX_READ_BYTES = 64 * 1024 * 1024;
const ABSENT: FileState = { bytes: 'absent', text: 'absent' };

/** A file's contents as digests: byte for byte, and as the text that Claude Code sees. */
export interface FileState {
  readonly bytes: string;
  readonly text: string;
}

interface Tracked {
  readonly path: string;
  /** As it was when the session last wrote it, or when a message was taken up. */
  last: FileState;
  /** The last message that a rewind cannot reach or pass without losing someone else's changes. */
  foreignSince: number;
}

/**
 * What a session left in the files it wrote, so that a rewind can tell whether someone else has changed them since. A
 * checkpoint is taken when a message is taken up: earlier changes by others are restored with it.
 */
export class FileTrail {
  readonly #files = new Map<string, Tracked>();
  readonly #messages = new Map<string, number>();
  /** Sequential, so that files are read in the order in which they were reported. */
  #queue: Promise<void> = Promise.resolve();

  messageTaken(id: string): void {
    const message = this.#messages.size + 1;
    this.#messages.set(id, message);
    this.#inOrder(async () => {
      for (const file of this.#files.values()) this.#saw(file, await stateOf(file.path), message - 1);
    });
  }

  written(file: string, before: FileBefore): void {
    const message = this.#messages.size;
    this.#inOrder(async () => {
      const key = await canonical(file);
      const known = this.#files.get(key);
      const now = await stateOf(key);
      if (!known) this.#files.set(key, { path: key, last: now, foreignSince: -1 });
      else {
        if (!wasLeft(known.last, before)) known.foreignSince = message;
        known.last = now;
      }
    });
  }

  /** A rewind has restored it. */
  async putBack(file: string): Promise<void> {
    await this.#queue;
    const known = this.#files.get(await canonical(file));
    if (known) known.last = await stateOf(known.path);
  }

  /** Why a rewind to this message has to leave the file alone, or `undefined` if it need not. */
  async whyForeign(file: string, toMessage: string): Promise<string | undefined> {
    await this.#queue;
    const known = this.#files.get(await canonical(file));
    if (!known)
      return 'this server did not see the session write it: it has restarted since, or the session is a copy of the one that wrote it; restore it yourself, for example with git';
    const now = await stateOf(known.path);
    const changed = now.bytes !== known.last.bytes || known.foreignSince >= (this.#messages.get(toMessage) ?? 0);
    if (!changed) return undefined;
    return now.bytes === ABSENT.bytes ? 'removed since' : 'changed since by someone else or by a command';
  }

  #saw(file: Tracked, now: FileState, message: number): void {
    if (now.bytes !== file.last.bytes) file.foreignSince = message;
    file.last = now;
  }

  #inOrder(step: () => Promise<void>): void {
    this.#queue = this.#queue.then(step).catch(() => undefined);
  }
}

function wasLeft(last: FileState, before: FileBefore): boolean {
  switch (before.kind) {
    case 'absent':
      return last.bytes === ABSENT.bytes;
    case 'text':
      return last.text === textDigest(before.text);
    case 'unknown':
      return false;
  }
}

export async function stateOf(file: string): Promise<FileState> {
  try {
    const found = await lstat(file);
    if (!found.isFile() || found.size > MAX_READ_BYTES) {
      const told = `${found.mode} ${found.size} ${found.mtimeMs}`;
      return { bytes: told, text: told };
    }
    const bytes = await readFile(file);
    return { bytes: digest(bytes), text: textDigest(bytes.toString('utf8')) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ABSENT;
    return { bytes: String(error), text: String(error) };
  }
}

/** The directory without links; the file itself may be one, or not exist. */
async function canonical(file: string): Promise<string> {
  const directory = await realpath(path.dirname(file)).catch(() => path.dirname(file));
  return path.join(directory, path.basename(file));
}

function textDigest(text: string): string {
  return digest(text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n'));
}

function digest(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
