/** Searches a file for text from its end, so that a transcript of any size costs little memory. */

import { open, type FileHandle } from 'node:fs/promises';

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
