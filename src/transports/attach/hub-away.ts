import type { Settings } from '../../config/load-settings.ts';
import { DomainError, formatError } from '../../errors/errors.ts';

/** What can be said about a call without an answer from the hub. */
export type Away =
  | { readonly kind: 'cut off' }
  /** The call reached the hub, which has not responded to anything since. */
  | { readonly kind: 'silent' }
  /** The call never reached the hub. */
  | { readonly kind: 'not running'; readonly why: string };

const WHERE_TO_LOOK: Readonly<Record<Settings['toolset'], string>> = {
  compact:
    'claude_code_session {action: "list"} shows the sessions, claude_code_check {action: "poll", sessionId} one of them',
  explicit: 'claude_list_sessions shows the sessions, claude_get_status {sessionId} one of them',
};

interface Request {
  readonly id: unknown;
  readonly method: string;
  /** 2026-07-28: the request carries its own envelope, and its result a type. */
  readonly isModern: boolean;
}

/** The response to a request, in place of the hub's. */
export function answerInstead({ id, method, isModern }: Request, away: Away, toolset: Settings['toolset']): object {
  const error = formatError(new DomainError('UNAVAILABLE', reasonOf(away, toolset)));
  if (method !== 'tools/call') return { jsonrpc: '2.0', id, error: { code: -32000, message: error } };
  const answer = { isError: true, error };
  return {
    jsonrpc: '2.0',
    id,
    result: {
      content: [{ type: 'text', text: JSON.stringify(answer) }],
      structuredContent: answer,
      isError: true,
      ...(isModern && { resultType: 'complete' }),
    },
  };
}

function reasonOf(away: Away, toolset: Settings['toolset']): string {
  switch (away.kind) {
    case 'cut off':
      return `The hub stopped during this call. Its outcome is unknown: it may have been carried out. Check before you repeat it: ${WHERE_TO_LOOK[toolset]}.`;
    case 'silent':
      return `The hub does not respond. The outcome of this call is unknown: it may have been carried out, or may be once the hub responds again. Check then, before you repeat it: ${WHERE_TO_LOOK[toolset]}.`;
    case 'not running':
      return `The hub cannot be reached, and nothing was done: ${away.why}. Its user can start it with "claude-code-mcp hub start"; then call again.`;
  }
}
