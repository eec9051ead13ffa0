import type { WhenBusy } from '../schema/enums.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import type { ConnectedClient } from './approvals.ts';

/** What a caller asks for when it starts a session. */
export interface StartRequest {
  prompt: string;
  options: SessionOptions;
  /** Defaults for what the caller did not set. */
  defaults?: SessionOptions;
  /**
   * The connection this comes from: its principal owns the session. Without one the session belongs to this program.
   */
  by?: ConnectedClient | undefined;
  /** The session's id, if another hub chose it and placed the session here. */
  id?: string;
  /** `unfinishedText` of the session shows text as it is written. */
  streamsText?: boolean;
}

/** What a caller asks for when it continues one. */
export interface ReplyRequest {
  sessionId: string;
  prompt: string;
  fork?: boolean;
  whenBusy?: WhenBusy;
  model?: string | undefined;
  permissionMode?: PermissionMode | undefined;
  permissionRequestTimeoutMs?: number | undefined;
  sessionInitTimeoutMs?: number | undefined;
  /** As for a start; for a session that this reply brings to the server. */
  streamsText?: boolean;
  disk: DiskResume;
  /** As for a start, for a session that this reply creates: a fork, or one from disk. */
  by?: ConnectedClient | undefined;
}

/** How a session that exists only on disk may be resumed. */
export type DiskResume = Pick<StartRequest, 'options' | 'defaults'> &
  ({ kind: 'token'; token: string | undefined; resumeSessionAt?: string | undefined } | { kind: 'open' });

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
