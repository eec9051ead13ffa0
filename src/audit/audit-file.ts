import { mkdir, rename, rm, stat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { openOwnFile } from '../platform/own-file.ts';

interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  isFile(): boolean;
}

interface OpenFile {
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>;
  close(): Promise<void>;
}

/** The few functions of `node:fs/promises` in use, so that tests can make them fail. */
export interface AuditFileSystem {
  open(file: string, flags: 'a' | 'r' | 'wx', mode: number): Promise<OpenFile>;
  mkdir(directory: string, options: { recursive: true; mode: number }): Promise<unknown>;
  rename(from: string, to: string): Promise<void>;
  rm(file: string, options: { force: true }): Promise<void>;
  stat(file: string): Promise<FileIdentity>;
}

const NODE_FILE_SYSTEM: AuditFileSystem = {
  open: (file, flags) => openOwnFile(file, ({ a: 'append', r: 'read', wx: 'create' } as const)[flags]),
  mkdir,
  rename,
  rm,
  stat,
};

export interface RotationRule {
  readonly maxBytes: number;
  /** How many full files are kept beside the current one. */
  readonly keep: number;
}

const OWNER_ONLY_FILE = 0o600;
const OWNER_ONLY_DIRECTORY = 0o700;
/** A lock of this age was left by a dead server: a rotation takes milliseconds. */
const STALE_LOCK_MS = 10_000;

/** Checking and opening cost more than the write itself, and a busy session writes many times per second. */
const HELD_MS = 1_000;

interface Held {
  readonly handle: OpenFile;
  readonly until: number;
  /** As far as this server knows: others may append too. */
  size: number;
}

/**
 * A file that several servers may append to. It is held open only for a moment: a handle kept open would keep
 * writing to a file that another server has rotated away and will delete.
 */
export class AuditFile {
  readonly #file: string;
  readonly #rule: RotationRule;
  readonly #fs: AuditFileSystem;
  #held: Held | undefined;
  #fullFilesClosed: Promise<void> | undefined;

  constructor(file: string, rule: RotationRule, fs: AuditFileSystem = NODE_FILE_SYSTEM) {
    this.#file = file;
    this.#rule = rule;
    this.#fs = fs;
  }

  /**
   * Appends in a single write, which O_APPEND keeps intact. Returns how many bytes were written: fewer on a full disk.
   */
  async append(bytes: Uint8Array): Promise<number> {
    const held = this.#holdFor(bytes.length) ?? (await this.#takeHold(bytes.length));
    let written = 0;
    try {
      written = (await held.handle.write(bytes)).bytesWritten;
      held.size += written;
      return written;
    } finally {
      // Whatever went wrong, the next batch starts by checking what exists.
      if (written < bytes.length) await this.release();
    }
  }

  async release(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    await held?.handle.close().catch(() => undefined);
  }

  #holdFor(added: number): Held | undefined {
    const held = this.#held;
    return held && performance.now() < held.until && held.size + added <= this.#rule.maxBytes ? held : undefined;
  }

  async #takeHold(added: number): Promise<Held> {
    await this.release();
    await (this.#fullFilesClosed ??= this.#closeFullFiles());
    // A failed rotation must not stop writing: the file outgrows its limit, and a later batch tries again.
    const size = await this.#rotateIfFull(added).catch(() => 0);
    const held = { handle: await this.#open(), until: performance.now() + HELD_MS, size };
    this.#held = held;
    return held;
  }

  async #open(): Promise<OpenFile> {
    try {
      return await this.#fs.open(this.#file, 'a', OWNER_ONLY_FILE);
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
      await this.#fs.mkdir(path.dirname(this.#file), { recursive: true, mode: OWNER_ONLY_DIRECTORY });
      return await this.#fs.open(this.#file, 'a', OWNER_ONLY_FILE);
    }
  }

  /** Full files that an earlier version left readable to others; opening them makes them private. */
  async #closeFullFiles(): Promise<void> {
    for (let age = 1; age <= this.#rule.keep; age++) {
      const file = await this.#fs.open(rotatedName(this.#file, age), 'r', OWNER_ONLY_FILE).catch(() => undefined);
      await file?.close();
    }
  }

  /** Returns the resulting size. */
  async #rotateIfFull(added: number): Promise<number> {
    const full = await this.#fs.stat(this.#file);
    if (!full.isFile() || full.size === 0 || full.size + added <= this.#rule.maxBytes) return full.size;
    const lock = `${this.#file}.lock`;
    if (!(await this.#acquire(lock))) return full.size;
    try {
      // Another server may have rotated since; renaming the fresh file would push a full one out too early.
      const current = await this.#fs.stat(this.#file);
      if (current.ino !== full.ino || current.dev !== full.dev) return current.size;
      await this.#shiftFiles();
      return 0;
    } finally {
      await this.#fs.rm(lock, { force: true });
    }
  }

  async #acquire(lock: string): Promise<boolean> {
    try {
      await (await this.#fs.open(lock, 'wx', OWNER_ONLY_FILE)).close();
      return true;
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
      const { mtimeMs } = await this.#fs.stat(lock);
      // The lock is removed, not taken over: two servers that find it stale must still compete for the next one.
      if (Date.now() - mtimeMs > STALE_LOCK_MS) await this.#fs.rm(lock, { force: true });
      return false;
    }
  }

  async #shiftFiles(): Promise<void> {
    if (this.#rule.keep === 0) return this.#fs.rm(this.#file, { force: true });
    for (let age = await this.#firstFreeAge(); age > 1; age--) {
      await this.#fs.rename(rotatedName(this.#file, age - 1), rotatedName(this.#file, age));
    }
    await this.#fs.rename(this.#file, rotatedName(this.#file, 1));
  }

  /** The highest number allowed if none is free: the existing file gives way. */
  async #firstFreeAge(): Promise<number> {
    for (let age = 1; age < this.#rule.keep; age++) {
      const taken = await this.#fs.stat(rotatedName(this.#file, age)).catch(() => undefined);
      if (taken === undefined) return age;
    }
    return this.#rule.keep;
  }
}

/** Age 1 is the youngest of the full files. */
export function rotatedName(file: string, age: number): string {
  return `${file}.${age}`;
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Removes rotated audit log files whose last record is older than this. The current file stays. */
export async function removeOldAudit(auditLog: string, before: number): Promise<string[]> {
  if (auditLog === 'off') return [];
  const directory = path.dirname(auditLog);
  const prefix = `${path.basename(auditLog)}.`;
  const removed: string[] = [];
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.startsWith(prefix) || !/^\d+$/.test(name.slice(prefix.length))) continue;
    const file = path.join(directory, name);
    const { mtimeMs } = await stat(file);
    if (mtimeMs >= before) continue;
    await rm(file);
    removed.push(file);
  }
  return removed;
}
