import type { Settings } from '../config/load-settings.ts';

/** What the calling model is told about the whole toolset: the shortest way through a task. */
export const INSTRUCTIONS: Record<Settings['toolset'], string> = {
  compact:
    'Drives Claude Code as an autonomous coding agent; one call per decision. Start: claude_code {prompt, cwd, waitMs: 45000}. ' +
    'Status "waiting_permission": answer one of actions with claude_code_check {action: "respond_permission", sessionId, requestId, decision, waitMs: 45000} ' +
    '(a question: decision "allow" with permissionOptions.answers); the answer contains what comes next. With askedPerson a person is deciding: wait again. ' +
    'Status "running": claude_code_check {action: "wait", sessionId}. Status "idle": result.result is what Claude claims, result.work is what happened; ' +
    'check work.problems (failed and denied tool calls) before you believe it. ' +
    'Parallel attempts: start each with advanced.workspace {type: "worktree"}, compare result.work and claude_code_session {action: "diff"}, then apply one and discard the others. ' +
    'Continue: claude_code_reply {sessionId, prompt, waitMs: 45000}. An unanswered request is denied when it expires. Nothing is lost when a call times out: wait again.',
  explicit:
    'Drives Claude Code as an autonomous coding agent; one call per decision. Start: claude_create_session {prompt, workingDirectory, waitMs: 45000}. ' +
    'Status "waiting_for_input": answer one of pendingInputs with claude_respond {sessionId, inputId, decision, waitMs: 45000} ' +
    '(a question: decision "allow" with answers); the answer contains what comes next. With askedPerson a person is deciding: wait again. ' +
    'Status "running": claude_get_status {sessionId, waitMs: 45000}. Status "completed": result is what Claude claims, work is what happened; ' +
    'check work.problems (failed and denied tool calls) before you believe it. ' +
    'Parallel attempts: one session per git worktree (workingDirectory), compare their work, merge the best; work.shared means that two sessions worked in the same one. ' +
    'Continue: claude_send_message {sessionId, message, waitMs: 45000}. An unanswered request is denied when it expires. Nothing is lost when a call times out: check again.',
};
