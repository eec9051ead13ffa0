import type { HubRef, TranscriptEntry, TranscriptPart } from '../schema/store.ts';
import type { Backend } from './backend.ts';
import type { StoreTranscripts } from './contract.ts';
import { checkSessionOwner, noNeeds } from './plan.ts';
import { toJson } from './row-facts.ts';
import type { SqlTables } from './sql/tables.ts';
import type { TranscriptRow } from './sql/transcripts.ts';

/** Who may write a transcript, and which entries are new. */
export function storeTranscripts(backend: Backend): StoreTranscripts {
  const changed = (by: HubRef, part: TranscriptPart, change: (tables: SqlTables) => Promise<void>): Promise<void> =>
    backend.transact('quiet', async (tables) => {
      const { sessionId } = part;
      // The row stays locked until the end, so that no one else adds to the same part.
      const loaded = await tables.load({ ...noNeeds(), sessions: new Set([sessionId]) }, by.hub);
      checkSessionOwner(sessionId, by, loaded);
      await change(tables);
    });

  return {
    transcript: (part) => backend.reads.transcripts.transcript(part),
    transcriptSubpaths: (sessionId) => backend.reads.transcripts.transcriptSubpaths(sessionId),
    async appendTranscript(by, part, entries) {
      if (entries.length === 0) return;
      await changed(by, part, async ({ transcripts }) => {
        const uuids = entries.flatMap(({ uuid }) => uuid ?? []);
        const [known, last] = await Promise.all([transcripts.knownUuids(part, uuids), transcripts.lastPosition(part)]);
        await transcripts.add(part, rowsOf(withoutRepeats(entries, known), last));
      });
    },
    replaceTranscript: (by, part, entries) =>
      changed(by, part, async ({ transcripts }) => {
        const rows = rowsOf(withoutRepeats(entries, new Set()), 0);
        await transcripts.remove(part);
        await transcripts.add(part, rows);
      }),
  };
}

function withoutRepeats(entries: readonly TranscriptEntry[], known: Set<string>): TranscriptEntry[] {
  return entries.filter(({ uuid }) => {
    if (uuid === undefined) return true;
    const isNew = !known.has(uuid);
    known.add(uuid);
    return isNew;
  });
}

function rowsOf(entries: readonly TranscriptEntry[], last: number): TranscriptRow[] {
  return entries.map((entry, index) => ({ position: last + index + 1, uuid: entry.uuid, json: toJson(entry) }));
}
