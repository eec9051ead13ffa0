import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Directories } from './directories.ts';

/** No hand-written settings file comes close. */
const MAX_BYTES = 1_000_000;

/**
 * The settings as an object: a string is JSON or the path of a JSON file, as for Claude Code itself. A file is read
 * once, here, so that what was checked is what runs. No error repeats any of the text: it could be any file.
 */
export async function settingsObject(
  settings: SessionOptions['settings'],
  cwd: string,
  directories: Directories,
): Promise<Record<string, unknown> | undefined> {
  if (typeof settings !== 'string') return settings;
  if (settings.trimStart().startsWith('{')) return parsed(settings, 'the text');
  const file = path.resolve(cwd, directories.written(settings, 'settings', cwd));
  return parsed(await textOf(file), file);
}

/**
 * The settings with every directory as the absolute path that was checked, because Claude Code may resolve another form
 * differently.
 */
export function withCheckedDirectories(
  settings: Record<string, unknown>,
  cwd: string,
  directories: Directories,
): Record<string, unknown> {
  if (!directories.checksSettings) return settings;
  const checked = { ...settings };
  for (const name of ['autoMemoryDirectory', 'plansDirectory']) {
    if (checked[name] !== undefined) checked[name] = directories.written(text(checked[name], name), name, cwd);
  }
  const { permissions } = settings;
  if (typeof permissions !== 'object' || permissions === null || !('additionalDirectories' in permissions))
    return checked;
  const { additionalDirectories: given } = permissions;
  if (!Array.isArray(given))
    throw new DomainError('INVALID_ARGUMENT', 'settings: additionalDirectories is not a list.');
  const additionalDirectories = given.map((one) =>
    directories.written(text(one, 'additionalDirectories'), 'additionalDirectories', cwd),
  );
  return { ...checked, permissions: { ...permissions, additionalDirectories } };
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new DomainError('INVALID_ARGUMENT', `settings: a path in ${name} is not text.`);
}

function parsed(text: string, what: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The same error as for JSON that is not an object.
  }
  throw new DomainError('INVALID_ARGUMENT', `settings: ${what} is not a JSON object.`);
}

async function textOf(file: string): Promise<string> {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe would block until something writes to it.
    handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch {
    throw unusable(file, 'cannot be read');
  }
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw unusable(file, 'is not a regular file');
    if (found.size > MAX_BYTES) throw unusable(file, `is larger than ${String(MAX_BYTES)} bytes`);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(found.size), 0, found.size, 0);
    return buffer.toString('utf8', 0, bytesRead).replace(/^\uFEFF/, '');
  } finally {
    await handle.close();
  }
}

function unusable(file: string, why: string): DomainError {
  return new DomainError('INVALID_ARGUMENT', `settings: ${file} ${why}.`);
}
