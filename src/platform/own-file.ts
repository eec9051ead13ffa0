import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

const FLAGS = {
  read: constants.O_RDONLY,
  append: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT,
  create: constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
} as const;

/** Windows has neither; there a link requires rights that ordinary users lack. */
const SAFE_FLAGS = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens one of this server's own files. A link is not followed, since it would read or write someone else's file; a
 * pipe is refused, since opening it may block forever; a file that others could read is made private.
 */
export async function openOwnFile(file: string, purpose: keyof typeof FLAGS): Promise<FileHandle> {
  const handle = await open(file, FLAGS[purpose] | SAFE_FLAGS, OWNER_ONLY);
  try {
    const found = await handle.stat();
    // A device can only have been named by the operator, such as /dev/null.
    if (!found.isFile() && !found.isCharacterDevice()) throw new Error(`${file} is not a regular file`);
    if (found.isFile() && (found.mode & OTHERS) !== 0 && process.platform !== 'win32')
      await handle.chmod(OWNER_ONLY).catch((error: unknown) => {
        // Someone else's file may be read, but not written to.
        if (purpose !== 'read') throw error;
      });
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
