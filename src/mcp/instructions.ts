import type { Settings } from '../config/load-settings.ts';

/** What the calling model is told about the whole set: the shortest way through a task. */
export const INSTRUCTIONS: Record<Settings['toolset'], string> = {
  compact:
    'Drives Claude Code as an autonomous coding agent. Shortest way: claude_code {prompt, cwd, waitMs: 45000}; ' +
    'while status is "running", claude_code_check {action:"wait", sessionId}; when it is "waiting_permission", look at actions and answer each with ' +
    'claude_code_check {action:"respond_permission", sessionId, requestId, decision} (with askedPerson, a person is deciding: wait again); at "idle" the answer is in result. ' +
    'Continue with claude_code_reply {sessionId, prompt, waitMs}. Nothing is lost when a call times out: wait again with the sessionId.',
  explicit:
    'Drives Claude Code as an autonomous coding agent. claude_create_session {prompt, workingDirectory}, then claude_get_status {sessionId, waitMs: 45000} ' +
    'until status is "completed" (result) or "waiting_for_input": answer each of pendingInputs with claude_respond {sessionId, inputId, decision} (with askedPerson, a person is deciding: wait again). ' +
    'Continue with claude_send_message. Nothing is lost when a call times out: ask for the status again.',
};
