import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { pinnedSettings } from '../../schema/worktree-record.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * The baselines of a session, beside the objects that they refer to. They belong to the session: a server that
 * continues it after a restart compares with them, not with what it finds.
 */

const fileState = z.object({ mode: z.string(), oid: z.string() }).nullable();

const snapshot = z.object({
  head: z.string().optional(),
  tree: z.string(),
  changed: z.array(z.object({ path: z.string(), head: fileState, now: fileState })),
  lastWrite: z.number(),
});

const keptStart = z.object({ root: z.string(), pinned: pinnedSettings, begun: snapshot });
export type KeptStart = z.infer<typeof keptStart>;

const START = 'start.json';
const LAST = 'last.json';

/** How the session began in this checkout; undefined if it did not, or if that is unknown. */
export async function loadStart(scratch: string, root: string): Promise<KeptStart | undefined> {
  const { data } = keptStart.safeParse(await read(scratch, START));
  return data?.root === root ? data : undefined;
}

export async function keepStart(scratch: string, start: KeptStart): Promise<void> {
  await write(scratch, START, start);
}

/** What the next report starts from if no server has taken a newer look; undefined before the first. */
export async function loadMark(scratch: string): Promise<Snapshot | undefined> {
  const { data } = snapshot.safeParse(await read(scratch, LAST));
  return data && { ...data, head: data.head };
}

export async function keepMark(scratch: string, mark: Snapshot): Promise<void> {
  await write(scratch, LAST, mark);
}

async function read(scratch: string, name: string): Promise<unknown> {
  return readFile(path.join(scratch, name), 'utf8').then(JSON.parse, () => undefined);
}

/** Replaced as a whole: a killed server leaves the old content or the new. */
async function write(scratch: string, name: string, content: object): Promise<void> {
  const file = path.join(scratch, name);
  const beside = `${file}.${randomUUID()}`;
  await writeFile(beside, JSON.stringify(content), { mode: 0o600 });
  await rename(beside, file);
}
