import type { TranscriptReader } from '../engine/services.ts';
export function createTranscripts(_: { configDir: string }): TranscriptReader {
  return {
    find: async () => undefined,
    lastCostUsd: async () => 0,
    list: async () => [],
    findHolder: async () => undefined,
  };
}
