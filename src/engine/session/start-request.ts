import type { CommandOf } from '../../schema/commands.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { ConnectedClient } from '../requests/approvals.ts';

/** A start, and who asks for it. */
export interface StartRequest extends Omit<CommandOf<'start'>, 'kind'> {
  /**
   * The connection this comes from: its principal owns the session. Without one the session belongs to this program.
   */
  by?: ConnectedClient | undefined;
  /** The session's id, if another hub chose it and placed the session here. */
  id?: string;
}

/** A reply, and who asks for it: the owner of a session that it creates, a fork or one from disk. */
export interface ReplyRequest extends Omit<CommandOf<'reply'>, 'kind'> {
  by?: ConnectedClient | undefined;
}

/** The options with the reply's values replacing theirs. */
export function withOverrides(options: SessionOptions, request: ReplyRequest): SessionOptions {
  const { model, permissionMode, permissionRequestTimeoutMs, sessionInitTimeoutMs } = request;
  return {
    ...options,
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(permissionRequestTimeoutMs !== undefined && { permissionRequestTimeoutMs }),
    ...(sessionInitTimeoutMs !== undefined && { sessionInitTimeoutMs }),
  };
}

/**
 * Claude Code records the system prompt with the first message and sends that record from then on, whatever it is
 * given. A prompt given for an existing session takes effect only with `snapshot: false`, unless the caller sets
 * `snapshot` itself.
 */
export function withFreshSystemPrompt({ systemPrompt, ...options }: SessionOptions): SessionOptions {
  if (systemPrompt === undefined) return options;
  const fresh =
    typeof systemPrompt === 'string'
      ? { type: 'custom' as const, prompt: systemPrompt, snapshot: false }
      : { snapshot: false, ...systemPrompt };
  return { ...options, systemPrompt: fresh };
}
