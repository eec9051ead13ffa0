import { TranscriptEntry, type TranscriptPart } from '../schema/store.ts';
import type { TranscriptReads, TranscriptRow, TranscriptTable } from './tables.ts';

export class MemoryTranscripts implements TranscriptTable, TranscriptReads {
  /** By session, then by subpath; the conversation's own is empty. */
  readonly #sessions = new Map<string, Map<string, TranscriptRow[]>>();

  async lastPosition(part: TranscriptPart): Promise<number> {
    return this.#rows(part).at(-1)?.position ?? 0;
  }

  async knownUuids(part: TranscriptPart, uuids: readonly string[]): Promise<Set<string>> {
    const known = new Set(this.#rows(part).map(({ uuid }) => uuid));
    return new Set(uuids.filter((uuid) => known.has(uuid)));
  }

  async add(part: TranscriptPart, rows: readonly TranscriptRow[]): Promise<void> {
    if (rows.length > 0) this.#put(part, [...this.#rows(part), ...rows]);
  }

  async remove(part: TranscriptPart): Promise<void> {
    this.#sessions.get(part.sessionId)?.delete(part.subpath ?? '');
  }

  forget(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  async transcript(part: TranscriptPart): Promise<TranscriptEntry[] | undefined> {
    const rows = this.#rows(part);
    return rows.length === 0 ? undefined : rows.map(({ json }) => TranscriptEntry.parse(JSON.parse(json)));
  }

  async transcriptSubpaths(sessionId: string): Promise<string[]> {
    return [...(this.#sessions.get(sessionId)?.keys() ?? [])].filter((subpath) => subpath !== '').sort();
  }

  #rows({ sessionId, subpath = '' }: TranscriptPart): readonly TranscriptRow[] {
    return this.#sessions.get(sessionId)?.get(subpath) ?? [];
  }

  #put({ sessionId, subpath = '' }: TranscriptPart, rows: TranscriptRow[]): void {
    const parts = this.#sessions.get(sessionId) ?? new Map<string, TranscriptRow[]>();
    this.#sessions.set(sessionId, parts.set(subpath, rows));
  }
}
