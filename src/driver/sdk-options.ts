import type { Options, SDKUserMessage } from '@anthropic-ai/claude-agent-sdk';
import type { SessionOptions } from '../schema/session-options.ts';
import { onlyBundledProgram } from './claude-code-program.ts';
import { EXPOSED_OPTIONS } from './options-table.ts';

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

/** The user messages of a session as an endless stream that keeps one process alive over many turns. */
export class InputQueue implements AsyncIterable<SDKUserMessage> {
  readonly #waiting: SDKUserMessage[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  push(text: string, id: string): void {
    this.#waiting.push({
      type: 'user',
      message: { role: 'user', content: text },
      parent_tool_use_id: null,
      uuid: id as NonNullable<SDKUserMessage['uuid']>,
    });
    this.#wake?.();
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SDKUserMessage> {
    for (;;) {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) yield next;
      if (this.#ended) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** A question needs an answer, not a permission: approved in advance, it would get an empty answer. */
const NEVER_APPROVED_IN_ADVANCE = new Set(['AskUserQuestion']);

/**
 * Without it the SDK sends an empty prompt instead of Claude Code's own, and what runs is no longer the user's Claude
 * Code; with it, nothing is sent.
 */
const OWN_SYSTEM_PROMPT = { type: 'preset', preset: 'claude_code' } as const;

/** What a caller set, in the SDK's form. An omitted option is not passed to Claude Code. */
export function sdkOptions(given: SessionOptions): Options {
  const options: Record<string, unknown> = { systemPrompt: OWN_SYSTEM_PROMPT };
  for (const name of EXPOSED_OPTIONS) if (given[name] !== undefined) options[name] = given[name];
  if (given.allowedTools) {
    options['allowedTools'] = given.allowedTools.filter((tool) => !NEVER_APPROVED_IN_ADVANCE.has(tool));
  }
  if (given.permissionMode === 'bypassPermissions') options['allowDangerouslySkipPermissions'] = true;
  return options;
}

/** Like above, for a process that is about to be started. */
export function launchOptions(given: SessionOptions, managedSettings?: Options['managedSettings']): Options {
  const program = onlyBundledProgram();
  return {
    ...(program !== undefined && { pathToClaudeCodeExecutable: program }),
    ...sdkOptions(given),
    ...(managedSettings && { managedSettings }),
  };
}
