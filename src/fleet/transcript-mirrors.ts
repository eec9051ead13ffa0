import type { MirroredEntry, MirroredPart, TranscriptMirror } from '../driver/sdk-options.ts';
import { deferred, type Deferred } from '../engine/clock.ts';
import type { MirroredSession, MirrorListener, TranscriptMirrors } from '../engine/ports.ts';
import { messageOf } from '../errors/errors.ts';
import type { HubRef } from '../schema/store.ts';
import { StoreConflict, type StoreTranscripts } from '../store/contract.ts';
import { untilReachable } from '../store/until-reachable.ts';
import {
  partFiles,
  readLines,
  readPart,
  writeParts,
  type PartFile,
  type TranscriptLine,
} from '../transcripts/transcript-parts.ts';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
/** The entry with a tool call follows the question about it, usually within 100 ms. */
const MAX_LAG_MS = 2_000;

export interface MirrorsOptions {
  readonly store: StoreTranscripts;
  /** This incarnation of this hub. */
  readonly by: HubRef;
  readonly configDir: string;
  /** Resolves when the rows of all sessions are stored: without its row, nothing of a session is. */
  readonly stored: () => Promise<void>;
  readonly log: (level: 'debug' | 'warn', line: string) => void;
}

/** Transcripts of sessions that can move, in the store that all hubs share. */
export class StoredTranscripts implements TranscriptMirrors {
  readonly #options: MirrorsOptions;
  /** How far a session's files are known to be in the store. */
  readonly #progress = new WeakMap<MirroredSession, Progress>();

  constructor(options: MirrorsOptions) {
    this.#options = options;
  }

  async fetch({ id }: MirroredSession, cwd: string, isGivenUp: () => boolean): Promise<boolean> {
    const { configDir, log } = this.#options;
    const parts = await untilReachable(() => this.#newerParts(id), isGivenUp);
    if (!parts) return false;
    await writeParts(configDir, { sessionId: id, cwd }, parts);
    log('debug', `session ${id}: its transcript was fetched from the store`);
    return true;
  }

  /** Undefined if the files here already have all of it. */
  async #newerParts(id: string): Promise<Map<string | undefined, readonly TranscriptLine[]> | undefined> {
    const { store, configDir } = this.#options;
    const shared = await store.transcript({ sessionId: id });
    // Nothing was ever mirrored: everything there is, is here.
    if (!shared) return undefined;
    const [conversation] = await partFiles(configDir, id);
    const own = new Set((conversation ? await readPart(conversation) : []).map(({ uuid }) => uuid));
    if (shared.every(({ uuid }) => uuid === undefined || own.has(uuid))) return undefined;
    const parts = new Map<string | undefined, readonly TranscriptLine[]>([[undefined, shared]]);
    for (const subpath of await store.transcriptSubpaths(id)) {
      parts.set(subpath, (await store.transcript({ sessionId: id, subpath })) ?? []);
    }
    return parts;
  }

  open(session: MirroredSession, listener: MirrorListener): TranscriptMirror {
    const progress = this.#progress.get(session) ?? new Progress();
    this.#progress.set(session, progress);
    return new StoreMirror(session.id, progress, listener, this.#options);
  }
}

/** Of one session, whichever process writes it. */
class Progress {
  /** By subpath: up to here each line that has a uuid is stored. */
  readonly checked = new Map<string | undefined, number>();
  /** By subpath: the uuids of lines stored since. */
  readonly fresh = new Map<string | undefined, Set<string>>();
  /** Parts from which the SDK has dropped something. Comparing does not notice missing lines without a uuid. */
  readonly suspect = new Set<string | undefined>();
}

class StoreMirror implements TranscriptMirror {
  readonly #sessionId: string;
  readonly #progress: Progress;
  readonly #listener: MirrorListener;
  readonly #options: MirrorsOptions;
  #settling: Promise<void> | undefined;
  #isWhole = false;
  #retry: NodeJS.Timeout | undefined;
  /** Tool calls whose entries are stored. */
  readonly #calls = new Set<string>();
  /** By tool call: resolved when its entry is stored. */
  readonly #awaited = new Map<string, Deferred<boolean>>();

  constructor(sessionId: string, progress: Progress, listener: MirrorListener, options: MirrorsOptions) {
    this.#sessionId = sessionId;
    this.#progress = progress;
    this.#listener = listener;
    this.#options = options;
  }

  async append(part: MirroredPart, entries: readonly MirroredEntry[]): Promise<void> {
    const { store, by, stored } = this.#options;
    // Entries after a gap are useless: the part is stored from the file again, which contains these entries too.
    if (this.#progress.suspect.has(part.subpath)) return this.#repair(part.subpath);
    const lines = [...entries];
    try {
      await store.appendTranscript(by, part, lines);
    } catch (error) {
      if (!(error instanceof StoreConflict) || error.conflict !== 'unknownSession') throw error;
      await stored();
      await store.appendTranscript(by, part, lines);
    }
    const fresh = this.#progress.fresh.get(part.subpath) ?? new Set();
    for (const { uuid } of entries) if (uuid !== undefined) fresh.add(uuid);
    this.#progress.fresh.set(part.subpath, fresh);
    for (const id of entries.flatMap(toolCallsIn)) {
      this.#calls.add(id);
      this.#awaited.get(id)?.resolve(true);
    }
  }

  async holds(toolUseId: string): Promise<void> {
    if (this.#calls.has(toolUseId)) return;
    const entry = this.#awaited.get(toolUseId) ?? deferred<boolean>();
    this.#awaited.set(toolUseId, entry);
    const timer = setTimeout(() => entry.resolve(false), MAX_LAG_MS).unref();
    const isStored = await entry.promise;
    clearTimeout(timer);
    this.#awaited.delete(toolUseId);
    if (!isStored) await this.settled();
  }

  async #repair(subpath: string | undefined): Promise<void> {
    const files = await partFiles(this.#options.configDir, this.#sessionId);
    for (const file of files) if (file.subpath === subpath) await this.#complete(file);
  }

  gaveUp(subpath: string | undefined, reason: string): void {
    this.#progress.suspect.add(subpath);
    this.#broken(reason);
    this.#tryAgain(FIRST_RETRY_MS);
  }

  settled(): Promise<void> {
    return (this.#settling ??= this.#settle(FIRST_RETRY_MS).finally(() => (this.#settling = undefined)));
  }

  async #settle(retryMs: number): Promise<void> {
    clearTimeout(this.#retry);
    try {
      for (const part of await partFiles(this.#options.configDir, this.#sessionId)) await this.#complete(part);
      this.#calls.clear();
      if (!this.#isWhole) this.#listener.onWhole();
      this.#isWhole = true;
    } catch (error) {
      this.#broken(messageOf(error));
      // Whoever has the session now also has its transcript.
      if (!(error instanceof StoreConflict)) this.#tryAgain(retryMs);
    }
  }

  /** Stores what the file has and the store lacks. */
  async #complete(part: PartFile): Promise<void> {
    const { checked, fresh, suspect } = this.#progress;
    const { file, subpath } = part;
    const { lines, end } = await readLines(file, checked.get(subpath));
    const known = fresh.get(subpath) ?? new Set();
    const areStored = lines.every(({ uuid }) => uuid === undefined || known.has(uuid));
    if (suspect.has(subpath) || (!areStored && !(await this.#hasAll(subpath, lines)))) {
      const { store, by, log } = this.#options;
      await store.replaceTranscript(by, { sessionId: this.#sessionId, ...named(subpath) }, await readPart(part));
      log('debug', `session ${this.#sessionId}: its transcript in the store was repaired from ${file}`);
      suspect.delete(subpath);
    }
    checked.set(subpath, end);
    fresh.delete(subpath);
  }

  async #hasAll(subpath: string | undefined, lines: readonly TranscriptLine[]): Promise<boolean> {
    const shared = await this.#options.store.transcript({ sessionId: this.#sessionId, ...named(subpath) });
    const uuids = new Set(shared?.map(({ uuid }) => uuid));
    return lines.every(({ uuid }) => uuid === undefined || uuids.has(uuid));
  }

  #broken(reason: string): void {
    this.#isWhole = false;
    this.#listener.onBroken(`its transcript is not in the store: ${reason}`);
  }

  #tryAgain(afterMs: number): void {
    clearTimeout(this.#retry);
    const longer = Math.min(2 * afterMs, MAX_RETRY_MS);
    this.#retry = setTimeout(() => void (this.#settling ?? this.#settle(longer)), afterMs).unref();
  }
}

function toolCallsIn({ message }: MirroredEntry): string[] {
  const { content } = (message ?? {}) as { content?: unknown };
  const blocks = Array.isArray(content) ? (content as { type?: unknown; id?: unknown }[]) : [];
  return blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [String(id)] : []));
}

function named(subpath: string | undefined): { subpath?: string } {
  return subpath === undefined ? {} : { subpath };
}
