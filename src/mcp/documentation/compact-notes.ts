import { CHECK_RETURNS } from './check-returns.ts';
import type { ToolNotes } from './tool-notes.ts';

const NOT_ASKED = 'not changed';

const waitMs = {
  meaning:
    'Wait up to this long for the session to finish or ask something; the answer then has everything that `claude_code_check` would return.',
  default: '0: return immediately',
};

function worktreeReturns(field: string): Record<string, string> {
  const fields = {
    path: 'With `includeSensitive`: where it lies.',
    repository: 'With `includeSensitive`: the checkout it was made from.',
    branch: 'Its branch.',
    base: 'What it started from, and where `apply` goes.',
    state:
      '`merged`: removing it loses nothing; `unmerged`; `unfinished`: an operation was interrupted, the next one resumes it; `missing`; `removed`.',
    uncommittedFiles: 'Files with uncommitted changes.',
    unmergedCommits: 'Commits that are on no other branch and were not applied.',
  };
  return Object.fromEntries(Object.entries(fields).map(([name, meaning]) => [`${field}.${name}`, meaning]));
}

const started = { returnsLike: 'claude_code_check', returns: {} };

export const COMPACT_NOTES: Readonly<Record<string, ToolNotes>> = {
  claude_code: {
    parameters: {
      prompt: { meaning: 'The task. Not blank.' },
      waitMs,
      advanced: {
        meaning: 'Less common options, below. Each may also be given at top level, with the same meaning.',
        default: 'none',
      },
    },
    ...started,
  },

  claude_code_reply: {
    parameters: {
      sessionId: { meaning: 'The session to continue.' },
      prompt: { meaning: 'The next message. Not blank.' },
      waitMs,
      forkSession: {
        meaning: 'Continue in a new session that starts with this one’s history; the original is unchanged.',
        default: '`false`',
      },
      whenBusy: {
        meaning:
          'What to do while the session is working: reject with `SESSION_BUSY`, or queue the message until the turn can take it.',
        default: '`reject`',
      },
      model: { meaning: 'Switch the model from this turn on.', default: NOT_ASKED },
      permissionMode: { meaning: 'Switch the permission mode from this turn on.', default: NOT_ASKED },
      permissionRequestTimeoutMs: { meaning: 'A different request timeout from now on.', default: NOT_ASKED },
      sessionInitTimeoutMs: {
        meaning: 'A different start timeout, if a process has to be started.',
        default: NOT_ASKED,
      },
      resumeToken: {
        meaning: 'The token returned when this session was started; for a session that exists only on disk.',
        default: 'none',
      },
      diskResumeConfig: {
        meaning:
          'For a session that exists only on disk: every option of `claude_code` except `prompt` and `waitMs`. Each may also be given at top level.',
        default: 'the session’s own directory, everything else as for a new session',
      },
      'diskResumeConfig.resumeSessionAt': {
        meaning: 'Uuid of the message after which the history is dropped.',
        default: 'the whole history',
      },
    },
    describedElsewhere: ['diskResumeConfig'],
    ...started,
  },

  claude_code_check: {
    parameters: {
      action: {
        meaning:
          '`wait` returns when the session finishes, asks something, or the time is up, and keeps waiting while a person has a form for the request; `poll` returns immediately; `respond_permission` answers one request.',
      },
      sessionId: { meaning: 'The session.' },
      cursor: {
        meaning: 'First event to return: `nextCursor` from the last answer.',
        default: 'the oldest event kept',
      },
      responseMode: {
        meaning: '`minimal` is a short form for models; `full` has what Claude Code sent.',
        default: '`minimal`',
      },
      maxEvents: {
        meaning: 'Maximum number of events in one answer.',
        default: '200 in `minimal`, no limit in `full`',
      },
      waitMs: {
        meaning:
          'For `wait` and `respond_permission`: maximum time to wait for the session to finish or ask something.',
        default: '45000 for `wait`, 0 for `respond_permission`',
      },
      pollOptions: {
        meaning: 'What to include in the answer. Each may also be given at top level.',
        default: 'see each one',
      },
      'pollOptions.includeTools': { meaning: '`availableTools`: the tools of this session.', default: '`false`' },
      'pollOptions.includeEvents': { meaning: '`events`.', default: '`true` for `poll`, `false` for the others' },
      'pollOptions.includeActions': { meaning: '`actions`: requests waiting for an answer.', default: '`true`' },
      'pollOptions.includeResult': { meaning: '`result`, once the session is at rest.', default: '`true`' },
      'pollOptions.includeUsage': { meaning: '`result.usage`: tokens of this call.', default: 'only in `full`' },
      'pollOptions.includeModelUsage': {
        meaning: '`result.modelUsage`: tokens and cost by model.',
        default: 'only in `full`',
      },
      'pollOptions.includeStructuredOutput': {
        meaning: '`result.structuredOutput`, if the session has an `outputFormat`.',
        default: '`true`',
      },
      'pollOptions.includeWork': {
        meaning: '`full`: `result.work` lists every file and command of the call.',
        default: '`short`: counts, and as many files as fit into 600 bytes',
      },
      'pollOptions.includeTerminalEvents': {
        meaning: 'Events that end a call, of type `result` and `error`.',
        default: 'only in `full`',
      },
      'pollOptions.includeProgressEvents': { meaning: 'Events of type `progress`.', default: 'only in `full`' },
      'pollOptions.maxBytes': {
        meaning: 'Approximate maximum size of the answer. `truncatedFields` lists what was cut.',
        default: '24000 in `minimal`, no limit in `full`',
      },
      'pollOptions.resultOffset': {
        meaning: 'Read a long final answer, or the output of `toolUseID`, starting at this character.',
        default: '0',
      },
      'pollOptions.toolUseID': {
        meaning: 'Show this tool call in full: input, output, outcome. Omits events and result unless requested.',
        default: 'none',
      },
      requestId: {
        meaning: 'For `respond_permission`: which of `actions` to answer. Required there.',
        default: 'none',
      },
      decision: { meaning: 'For `respond_permission`. Required there.', default: 'none' },
      denyMessage: { meaning: 'With `deny`: what Claude is told.', default: '“Permission denied by caller”' },
      interrupt: { meaning: 'With `deny`: also stop the turn.', default: '`false`' },
      permissionOptions: { meaning: 'With `allow`. Each may also be given at top level.', default: 'none' },
      'permissionOptions.updatedInput': {
        meaning: 'Run the tool with this input, which replaces the requested input entirely.',
        default: 'the requested input',
      },
      'permissionOptions.updatedPermissions': {
        meaning:
          'Permissions to grant with it, for this session; any other destination becomes `session`, with a warning. Refused wherever the corresponding option would be.',
        default: 'none',
      },
      'permissionOptions.always': {
        default: '`false`',
        meaning:
          'Also allow, for this session, what `alwaysAllows` says: harmless rules that Claude Code suggests, otherwise exactly this command; never a mode or a directory.',
      },
      'permissionOptions.answers': {
        meaning:
          'Answers to a question: `{"<question text>": "<label or text>"}`, or a list in the order of the questions; multiple labels as a list. Also accepted inside `updatedInput`.',
        default: 'none',
      },
    },
    returns: CHECK_RETURNS,
  },

  claude_code_session: {
    parameters: {
      action: {
        meaning:
          '`list` sessions, `get` one, `interrupt` its turn (it accepts replies afterwards), `cancel` it permanently, or `rewind` its files. `diff` shows its work: against the base of its worktree, or since the session started. `apply` brings the work of its worktree to the base, or changes nothing and says what is in the way. `discard` removes its worktree. With `APPROVALS=human`, `apply` and a forced `discard` ask the person.',
      },
      sessionId: { meaning: 'The session; required for everything except `list`.', default: 'none' },
      includeSensitive: {
        meaning: 'Also show directory, system prompt, agents and additional directories. The operator can forbid it.',
        default: '`false`',
      },
      scope: {
        meaning:
          'For `list`: the sessions this server knows, or all Claude Code sessions on this machine, newest first.',
        default: '`server`',
      },
      projectDirectory: { meaning: 'For `list` with `disk`: only sessions in this directory.', default: 'all' },
      limit: { meaning: 'For `list` with `disk`: maximum number of sessions.', default: '50' },
      offset: {
        meaning: 'For `list` with `disk`: how many to skip. For `diff`: `nextOffset` from the previous page.',
        default: '0',
      },
      maxBytes: { meaning: 'For `diff`: approximate maximum size of a page.', default: '24000' },
      mode: {
        meaning:
          'For `apply`: `merge` the branch into its base, `squash` it into one commit there, or apply it as a `patch`: uncommitted changes in the original checkout. Uncommitted changes in the worktree are committed to its branch first.',
        default: '`merge`',
      },
      message: { meaning: 'For `apply`: message of the commits it creates.', default: 'names the session' },
      force: {
        meaning: 'For `discard`: even with unmerged work; it is committed, and the branch is kept and named.',
        default: '`false`',
      },
      toUserMessage: {
        meaning: 'For `rewind`: uuid of the user message to go back to. Required there.',
        default: 'none',
      },
      dryRun: {
        meaning:
          'For `rewind`: only report what would be restored. Files that someone else or a command has changed since are listed and left alone, and so are files that this server did not see the session write. With `APPROVALS=human` a real rewind asks the person; the call waits up to 45 s for the answer.',
        default: '`true`',
      },
    },
    returns: {
      status: 'For a failed call: the status of the session it was about, if known.',
      sessions: 'The requested sessions.',
      'sessions[].sessionId': 'Id of the session.',
      'sessions[].status':
        '`running`, `waiting_permission`, `idle`, `error` or `cancelled`; on disk only for sessions this server knows.',
      'sessions[].createdAt': 'When it was started.',
      'sessions[].lastActiveAt': 'When something last happened.',
      'sessions[].totalTurns': 'Turns so far.',
      'sessions[].totalCostUsd': 'Cost so far, in US dollars.',
      'sessions[].costUnknown':
        '`true` if the actual cost is higher: the process was killed during a turn, so its cost was never reported and counts towards no budget.',
      'sessions[].model': 'Model in use.',
      'sessions[].permissionMode': 'Permission mode in use.',
      'sessions[].backgroundTasks': 'Tasks running in the background.',
      'sessions[].cancelledReason': 'Why it was cancelled.',
      'sessions[].cancelledSource': 'Who cancelled it.',
      'sessions[].displayText': 'On disk: its title or first words.',
      'sessions[].projectDirectory': 'On disk: its directory.',
      'sessions[].workspace': 'For a session with a worktree.',
      ...worktreeReturns('sessions[].workspace'),
      worktrees: 'For `list`: worktrees of sessions that the server no longer knows.',
      'worktrees[].sessionId': 'Id of the session; accepted by `diff`, `apply` and `discard`.',
      ...worktreeReturns('worktrees[]'),
      diff: 'For `diff`: one page of it.',
      'diff.filesChanged': 'How many files changed.',
      'diff.insertions': 'Lines added.',
      'diff.deletions': 'Lines removed.',
      'diff.files': 'On the first page: every file.',
      'diff.files[].path': 'Relative to the root of the checkout.',
      'diff.files[].oldPath': 'For a renamed file.',
      'diff.files[].status': '`added`, `modified`, `deleted`, `renamed` or `type-changed`.',
      'diff.files[].insertions': 'Lines added.',
      'diff.files[].deletions': 'Lines removed.',
      'diff.files[].isBinary': 'No lines to count or show.',
      'diff.diff': 'Unified diff.',
      'diff.totalBytes': 'Size of all pages together.',
      'diff.nextOffset': 'Where the next page starts; absent on the last one.',
      'sessions[].<option>':
        'The options it was started with, except those that can contain secrets (`env`, `mcpServers`, `settings`).',
      message: 'What was done, in words.',
      isError: '`true` if the call failed.',
      error: '`Error [CODE]: what went wrong and what to do about it`.',
    },
  },
};
