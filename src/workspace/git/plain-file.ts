import { constants } from 'node:fs';
import { copyFile, open } from 'node:fs/promises';

/** More than any of these files has; what a session puts in their place must not fill the memory. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * The text of a file that a session may have replaced; empty if there is none. A pipe or a device in its place would
 * block a thread of the server forever, or never end.
 */
export async function readPlainFile(file: string): Promise<string> {
  const handle = await openPlainFile(file);
  if (!handle) return '';
  try {
    return await handle.readFile('utf8');
  } catch {
    return '';
  } finally {
    await handle.close();
  }
}

/** Anything other than a regular file is not copied. */
export async function copyPlainFile(from: string, to: string): Promise<void> {
  const handle = await openPlainFile(from);
  if (!handle) return;
  await handle.close();
  await copyFile(from, to);
}

async function openPlainFile(file: string): Promise<Awaited<ReturnType<typeof open>> | undefined> {
  // Without waiting for the other end; Windows has neither this flag nor such files.
  const flags = constants.O_RDONLY | ((constants as Partial<typeof constants>).O_NONBLOCK ?? 0);
  const handle = await open(file, flags).catch(() => undefined);
  if (!handle) return undefined;
  const stats = await handle.stat();
  if (stats.isFile() && stats.size <= MAX_BYTES) return handle;
  await handle.close();
  return undefined;
}
