import type { Directories } from '../rules/directories.ts';
import type { DiskSession } from '../../transcripts/disk-sessions.ts';
import type { DiskQuery, TranscriptReader } from '../ports.ts';
import type { Session } from './session.ts';
import type { State } from '../conversation/state.ts';

/** A session of this machine: on disk, known to this server, or both. */
export interface ListedSession {
  readonly sessionId: string;
  readonly projectDirectory: string | undefined;
  readonly displayText: string;
  readonly lastActiveAt: number;
  /** The state it is in, if this server has a process for it. */
  readonly active: State | undefined;
}

/** What the disk has, newest first, within the directories the operator allows. */
export async function listDisk(
  transcripts: TranscriptReader,
  directories: Directories,
  worktrees: OwnWorktrees,
  { projectDirectory: given, limit, offset }: DiskQuery,
): Promise<DiskSession[]> {
  if (given !== undefined) directories.checkInside(given, 'projectDirectory');
  const projectDirectory = given === undefined ? undefined : directories.realPath(given);
  if (!directories.limited) return transcripts.list({ projectDirectory, limit, offset });
  const isInside = remembered((directory) => directories.isInside(directory));
  const own = await worktrees.checkouts();
  const within = (directory: string, sessionId: string): boolean => {
    const worktree = own.get(sessionId);
    return isInside(worktree?.cwd === directory ? worktree.origin : directory);
  };
  return transcripts.list({ projectDirectory, limit, offset, within });
}

/** A worktree counts as inside for its own session if the checkout it was made from is inside. */
export interface OwnWorktrees {
  checkouts(): Promise<ReadonlyMap<string, { readonly cwd: string; readonly origin: string }>>;
}

/** The same, merged with what this server has, even where Claude Code has written nothing yet. */
export async function listMachine(
  transcripts: TranscriptReader,
  directories: Directories,
  worktrees: OwnWorktrees,
  sessions: readonly Session[],
  { projectDirectory, limit }: Omit<DiskQuery, 'offset'>,
): Promise<ListedSession[]> {
  const written = await listDisk(transcripts, directories, worktrees, { projectDirectory, limit, offset: 0 });
  const place = projectDirectory === undefined ? undefined : directories.realPath(projectDirectory);
  const known = new Map(sessions.filter((session) => isAt(directories, session, place)).map((one) => [one.id, one]));
  const listed = written.map((disk) => {
    const live = known.get(disk.sessionId);
    known.delete(disk.sessionId);
    const { sessionId, displayText, lastModified } = disk;
    // The first lines of a transcript do not say where the session works.
    const directory = disk.projectDirectory ?? live?.options.cwd;
    const lastActiveAt = Math.max(lastModified, live?.conversation.times.lastActiveAt ?? 0);
    return { sessionId, projectDirectory: directory, displayText, lastActiveAt, active: activeState(live) };
  });
  const unwritten = [...known.values()].map((live) => ({
    sessionId: live.id,
    projectDirectory: live.options.cwd,
    displayText: live.conversation.topic,
    lastActiveAt: live.conversation.times.lastActiveAt,
    active: activeState(live),
  }));
  return [...listed, ...unwritten].sort((a, b) => b.lastActiveAt - a.lastActiveAt).slice(0, limit);
}

function activeState(live: Session | undefined): State | undefined {
  return live && (live.hasProcess || live.process.starting) ? live.state : undefined;
}

/** Many sessions share few directories, and resolving links is not free. */
function remembered(isInside: (directory: string) => boolean): (directory: string) => boolean {
  const known = new Map<string, boolean>();
  return (directory) => {
    const answer = known.get(directory) ?? isInside(directory);
    known.set(directory, answer);
    return answer;
  };
}

function isAt(directories: Directories, { options: { cwd } }: Session, place: string | undefined): boolean {
  return place === undefined || (cwd !== undefined && directories.realPath(cwd) === place);
}
