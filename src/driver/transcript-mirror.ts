import type { Options } from '@anthropic-ai/claude-agent-sdk';

/** Receives what a process writes to its transcript, so that another machine can continue the session. */
export interface TranscriptMirror {
  /** Rejects if it is not stored; the SDK retries twice, and then gives up on these entries. */
  append(part: MirroredPart, entries: readonly MirroredEntry[]): Promise<void>;
  /** The SDK has given up on some entries of a part. */
  gaveUp(subpath: string | undefined, reason: string): void;
  /** Resolves when the entry with this tool call is stored, or does not come. Never rejects. */
  holds(toolUseId: string): Promise<void>;
  /** Resolves when the copy is complete, or is known to be incomplete. Never rejects. */
  settled(): Promise<void>;
}

export interface MirroredPart {
  readonly sessionId: string;
  readonly subpath?: string;
}

export type MirroredEntry = Parameters<NonNullable<Options['sessionStore']>['append']>[1][number];

/**
 * With a store, the SDK (0.3.325) would resume a session in a temporary configuration directory, without the user's
 * memory, agents and skills. So it is told that the store is empty, and uses the file, which was brought up to date
 * before. Because checkpoint files are not mirrored, it also refuses to start with both; the variable is what the
 * option comes to.
 */
export function mirrorOptions(mirror: TranscriptMirror, options: Options): Options {
  const { enableFileCheckpointing, env, ...rest } = options;
  return {
    ...rest,
    sessionStore: {
      append: ({ sessionId, subpath }, entries) =>
        mirror.append({ sessionId, ...(subpath !== undefined && { subpath }) }, entries),
      load: async () => null,
    },
    sessionStoreFlush: 'eager',
    env: {
      ...env,
      ...(enableFileCheckpointing === true && { CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING: 'true' }),
    },
  };
}
