import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, stat, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { EDIT_TOOLS } from '../../schema/enums.ts';
import { realPath } from '../rules/directories.ts';
import { DomainError } from '../../errors/errors.ts';
import type { Answer } from '../../schema/commands.ts';
import type { AskRecord, RequestRecord } from '../../schema/events.ts';
import type { Stale, StaleChange, EditPlace } from '../../schema/results.ts';
import { escapeInvisible } from '../../text/invisible.ts';
import { cutAt } from '../conversation/tool-summary.ts';
import type { SessionOptions } from '../../schema/session-options.ts';

/** Files of any size are read in chunks, but no one waits for a huge one. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/**
 * What a call would act on right now, as a text to compare: its working directory and, for a file tool, the file with
 * its contents. A path alone is not enough: a directory replaced by a link, or by another directory, makes the same
 * call act elsewhere.
 */
export async function callTarget(toolName: string, input: Record<string, unknown>, cwd: string): Promise<string> {
  const named = editedFile(toolName, input);
  const directory = await directoryTarget(cwd);
  if (named === undefined) return directory;
  const file = path.resolve(cwd, named);
  return `${directory}, ${await identity(path.dirname(file))}, ${await identity(file)}: ${await contents(file)}`;
}

/** The beginning of every target in this directory. */
async function directoryTarget(cwd: string): Promise<string> {
  return `in ${await identity(cwd)}`;
}

/** The file that a file tool would change, as it was named. */
function editedFile(toolName: string, input: Record<string, unknown>): string | undefined {
  const named = EDIT_TOOLS.has(toolName) ? (input['file_path'] ?? input['notebook_path']) : undefined;
  return typeof named === 'string' ? named : undefined;
}

const MAX_HEAD_BYTES = 1_000;
const HEAD = /^(?:ref: refs\/heads\/([^\s\p{Cc}]{1,250})|([0-9a-f]{40,64}))\s*$/u;

/** What is checked out there: a branch, or a commit; undefined outside a repository. Runs nothing. */
export async function checkedOut(cwd: string): Promise<string | undefined> {
  for (let directory = realPath(cwd); ; directory = path.dirname(directory)) {
    const place = path.join(directory, '.git');
    const found = await stat(place).catch(() => undefined);
    if (found) {
      // A worktree has a file that names its own directory.
      const [, gitDirectory = place] = /^gitdir: (.+)$/m.exec((await smallText(place)) ?? '') ?? [];
      const head = await smallText(path.join(path.resolve(directory, gitDirectory), 'HEAD'));
      const [, branch, commit] = HEAD.exec(head ?? '') ?? [];
      return branch ?? commit;
    }
    if (path.dirname(directory) === directory) return undefined;
  }
}

/** Undefined for anything but a small file. */
async function smallText(file: string): Promise<string | undefined> {
  try {
    const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      return found.isFile() && found.size <= MAX_HEAD_BYTES ? await handle.readFile('utf8') : undefined;
    } finally {
      await handle.close();
    }
  } catch {
    return undefined;
  }
}

/**
 * Where a path really leads, and which file that is. Without the device: hubs that share a file system number it
 * differently, and another device cannot appear at the same real path without a mount.
 */
async function identity(named: string): Promise<string> {
  const real = realPath(named);
  return `${JSON.stringify(real)} ${await inode(real)}`;
}

/** Of what does not exist yet: the directory that it would be created in. */
async function inode(file: string): Promise<string> {
  try {
    return String((await stat(file, { bigint: true })).ino);
  } catch (error) {
    const parent = path.dirname(file);
    return parent === file ? codeOf(error) : `${codeOf(error)} in ${await inode(parent)}`;
  }
}

async function contents(file: string): Promise<string> {
  try {
    // A pipe would keep the reader waiting.
    const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      if (!found.isFile()) return 'not a file';
      if (found.size > MAX_READ_BYTES) return `${String(found.size)} bytes, changed ${String(found.mtimeMs)}`;
      const hash = createHash('sha256');
      for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer);
      return hash.digest('hex');
    } finally {
      await handle.close();
    }
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unreadable';
}

type Asked = Pick<AskRecord, 'toolName' | 'input'>;
type Subject = Pick<RequestRecord, 'edit' | 'target' | 'branch'>;

/**
 * What a call is about as it is asked; undefined where there is nothing to wait for. `isKept`: it may be answered much
 * later, and is compared with this then.
 */
export function subjectOf(ask: Asked, options: SessionOptions, isKept: boolean): Promise<Subject> | undefined {
  return isKept || ask.toolName === 'Edit' ? findSubject(ask, options, isKept) : undefined;
}

async function findSubject({ toolName, input }: Asked, options: SessionOptions, isKept: boolean): Promise<Subject> {
  const { cwd = '' } = options;
  return {
    edit: toolName === 'Edit' ? await findEditPlace(input, options) : undefined,
    target: isKept ? await callTarget(toolName, input, cwd) : undefined,
    branch: isKept ? await checkedOut(cwd) : undefined,
  };
}

/** What a request is compared with. */
export interface Present {
  /** Time of day. */
  readonly now: number;
  /** 0: never too old. */
  readonly staleAfterMs: number;
}

const MAX_NAME = 200;
const ABSENT = ': ENOENT';

/** What a request is about, as it is now; and why allowing it needs a second look, if it does. */
export async function examine(
  request: RequestRecord,
  { now, staleAfterMs }: Present,
): Promise<{ readonly target: string | undefined; readonly stale: Stale | undefined }> {
  const { ask, cwd = '', createdAt, target: before, branch: branchBefore } = request;
  const target = before === undefined ? undefined : await callTarget(ask.toolName, ask.input, cwd);
  const branch = branchBefore === undefined ? undefined : await checkedOut(cwd);
  const changes: StaleChange[] = [];
  const ageMs = Math.max(0, now - createdAt);
  if (staleAfterMs > 0 && ageMs > staleAfterMs) changes.push({ what: 'age', text: `it was asked ${ago(ageMs)} ago` });
  if (before !== undefined && target !== undefined && before !== target)
    changes.push(
      before.startsWith(await directoryTarget(cwd))
        ? { what: 'file', text: fileChange(editedFile(ask.toolName, ask.input) ?? '', before, target) }
        : { what: 'directory', text: `${shown(cwd)} is not the directory that it was` },
    );
  if (branchBefore !== branch)
    changes.push({
      what: 'branch',
      text: `${shown(branchBefore ?? '')} was checked out, now ${branch === undefined ? 'nothing is' : `${shown(branch)} is`}`,
    });
  if (changes.length === 0) return { target, stale: undefined };
  // Not the age itself: it grows between the question and the answer.
  const state = [request.id, changes.map(({ what }) => what), target, branch];
  const digest = createHash('sha256').update(JSON.stringify(state)).digest('hex').slice(0, 16);
  return { target, stale: { ageMs, changes, digest } };
}

/** Throws unless a permission may be given without a second look, or was given after one. */
export function checkConfirmed(stale: Stale | undefined, { decision, confirm }: Answer): void {
  if (decision === 'deny' || stale === undefined || stale.digest === confirm) return;
  const what = stale.changes.map(({ text }) => text).join('; ');
  throw new DomainError(
    'INVALID_ARGUMENT',
    `This request may no longer mean what it meant: ${what}. Look at it again; to allow it nevertheless, add confirm: "${stale.digest}".`,
  );
}

function fileChange(file: string, before: string, now: string): string {
  const name = shown(file);
  if (before.endsWith(ABSENT)) return `${name} did not exist, and now does`;
  return now.endsWith(ABSENT) ? `${name} no longer exists` : `${name} has changed`;
}

function shown(name: string): string {
  return escapeInvisible(cutAt(name, MAX_NAME));
}

function ago(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return `${Math.round(ms / 1000)} s`;
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

const MAX_FILE_BYTES = 1_000_000;
const LINES_AROUND = 2;
const LINE_CHARS = 200;
/** A caller waiting for the request must not have to wait for a file system. */
const PATIENCE_MS = 500;

/** Where an edit would go, for a file in the directories of the session; nothing else is read for the caller. */
export async function findEditPlace(
  input: Readonly<Record<string, unknown>>,
  { cwd = process.cwd(), additionalDirectories = [] }: Pick<SessionOptions, 'cwd' | 'additionalDirectories'>,
): Promise<EditPlace | undefined> {
  const { file_path: file, old_string: old } = input;
  if (typeof file !== 'string' || typeof old !== 'string' || old === '') return undefined;
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
    timer.unref();
  });
  const found = readInside(file, [cwd, ...additionalDirectories]).then(
    (text) => placeIn(text, old),
    () => undefined,
  );
  try {
    return await Promise.race([found, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

async function readInside(file: string, directories: readonly string[]): Promise<string> {
  const [real, ...roots] = await Promise.all([file, ...directories].map((name) => realpath(name)));
  const isInside = roots.some((root) => {
    const relative = path.relative(root, real ?? '');
    return relative !== '' && relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
  });
  if (real === undefined || !isInside) return '';
  const info = await stat(real);
  return info.isFile() && info.size <= MAX_FILE_BYTES ? readFile(real, 'utf8') : '';
}

export function placeIn(text: string, old: string): EditPlace | undefined {
  const at = text.indexOf(old);
  if (at < 0) return undefined;
  // The last line break ends a line and begins none.
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  const first = text.slice(0, at).split('\n').length;
  const last = first + old.replace(/\n$/, '').split('\n').length - 1;
  const shown = (from: number, to: number): string[] =>
    lines.slice(Math.max(0, from), to).map((line) => escapeInvisible(cutAt(line.replaceAll('\t', '  '), LINE_CHARS)));
  return { line: first, before: shown(first - 1 - LINES_AROUND, first - 1), after: shown(last, last + LINES_AROUND) };
}
