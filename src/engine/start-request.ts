import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import type { ConnectedClient } from './approvals.ts';

/** What a caller asks for when it starts a session. */
export interface StartRequest {
  prompt: string;
  options: SessionOptions;
  /** What holds where the caller set nothing. */
  defaults?: SessionOptions;
  /** The connection this comes from: its principal owns the session. Without one the session is this program's own. */
  by?: ConnectedClient | undefined;
  /** The session's id, where another hub chose it and placed the session here. */
  id?: string;
  /** `unfinishedText` of the session shows text while it is written. */
  streamsText?: boolean;
}

/** What a caller asks for when it continues one. */
export interface ReplyRequest {
  sessionId: string;
  prompt: string;
  fork?: boolean;
  whenBusy?: 'reject' | 'queue';
  model?: string | undefined;
  permissionMode?: PermissionMode | undefined;
  permissionRequestTimeoutMs?: number | undefined;
  sessionInitTimeoutMs?: number | undefined;
  /** As at a start; for a session that this reply brings to the server. */
  streamsText?: boolean;
  disk: DiskResume;
  /** As in a start, for a session that this reply makes: a fork, or one from disk. */
  by?: ConnectedClient | undefined;
}

/** How a session that only the disk remembers may be resumed. */
export type DiskResume = Pick<StartRequest, 'options' | 'defaults'> &
  ({ kind: 'token'; token: string | undefined; resumeSessionAt?: string | undefined } | { kind: 'open' });

/** The options with what the reply sets in place of theirs. */
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
 * Claude Code records the system prompt with the first message and sends that record from then on, whatever it is given.
 * A prompt given for an existing session counts only with `snapshot: false`, unless the caller sets `snapshot` itself.
 */
export function withFreshSystemPrompt({ systemPrompt, ...options }: SessionOptions): SessionOptions {
  if (systemPrompt === undefined) return options;
  const fresh =
    typeof systemPrompt === 'string'
      ? { type: 'custom' as const, prompt: systemPrompt, snapshot: false }
      : { snapshot: false, ...systemPrompt };
  return { ...options, systemPrompt: fresh };
}
