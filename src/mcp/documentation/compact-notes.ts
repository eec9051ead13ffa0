import { CHECK_RETURNS } from './check-returns.ts';
import type { ToolNotes } from './tool-notes.ts';

const NOT_ASKED = 'not changed';

const waitMs = {
  meaning:
    'Wait this long, at most, for the session to rest or to ask something; the answer then has all that `claude_code_check` would say.',
  default: '0: answer at once',
};

function worktreeReturns(field: string): Record<string, string> {
  const fields = {
    path: 'With `includeSensitive`: where it lies.',
    repository: 'With `includeSensitive`: the checkout it was made from.',
    branch: 'Its branch.',
    base: 'What it began at, and where `apply` goes.',
    state:
      '`merged`: nothing is lost with it; `unmerged`; `unfinished`: a step was cut off, the next one goes on; `missing`; `removed`.',
    uncommittedFiles: 'Files in it that are not committed.',
    unmergedCommits: 'Commits that no other branch holds and nobody has taken.',
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
        meaning: 'The rarer options, below. Each may also be given at top level and means the same there.',
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
        meaning: 'Answer in a new session that begins with this one’s history; the original stays as it is.',
        default: '`false`',
      },
      whenBusy: {
        meaning:
          'What to do while the session works: refuse with `SESSION_BUSY`, or hand the message over for when the turn can take it.',
        default: '`reject`',
      },
      model: { meaning: 'Switch the model from this turn on.', default: NOT_ASKED },
      permissionMode: { meaning: 'Switch the permission mode from this turn on.', default: NOT_ASKED },
      permissionRequestTimeoutMs: { meaning: 'Another time-out for requests from now on.', default: NOT_ASKED },
      sessionInitTimeoutMs: {
        meaning: 'Another time-out for the start, if a process has to be started.',
        default: NOT_ASKED,
      },
      resumeToken: {
        meaning: 'The token that the start of this session returned; for a session that only the disk remembers.',
        default: 'none',
      },
      diskResumeConfig: {
        meaning:
          'For a session that only the disk remembers: every option of `claude_code` but `prompt` and `waitMs`. Each may also be given at top level.',
        default: 'the session’s own directory, everything else as for a new session',
      },
      'diskResumeConfig.resumeSessionAt': {
        meaning: 'Uuid of the message after which the history is cut off.',
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
          '`wait` answers when the session rests, asks something, or the time is up, and holds while a person has a form about the request; `poll` answers at once; `respond_permission` answers one request.',
      },
      sessionId: { meaning: 'The session.' },
      cursor: {
        meaning: 'First event wanted: the `nextCursor` of the last answer.',
        default: 'the oldest event that is kept',
      },
      responseMode: {
        meaning: '`minimal` has what a model needs, in few words; `full` has what Claude Code sent.',
        default: '`minimal`',
      },
      maxEvents: { meaning: 'The most events in one answer.', default: '200 in `minimal`, no limit in `full`' },
      waitMs: {
        meaning: 'For `wait` and `respond_permission`: how long to wait, at most, for the session to rest or to ask.',
        default: '45000 for `wait`, 0 for `respond_permission`',
      },
      pollOptions: {
        meaning: 'What the answer carries. Each may also be given at top level.',
        default: 'as said for each',
      },
      'pollOptions.includeTools': { meaning: '`availableTools`: the tools of this session.', default: '`false`' },
      'pollOptions.includeEvents': { meaning: '`events`.', default: '`true` for `poll`, `false` for the others' },
      'pollOptions.includeActions': { meaning: '`actions`: what waits for an answer.', default: '`true`' },
      'pollOptions.includeResult': { meaning: '`result`, once the session rests.', default: '`true`' },
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
        meaning: 'About how large the answer may be. What is cut is named in `truncatedFields`.',
        default: '24000 in `minimal`, no limit in `full`',
      },
      'pollOptions.resultOffset': {
        meaning: 'Read a long final answer, or the output of `toolUseID`, from this character on.',
        default: '0',
      },
      'pollOptions.toolUseID': {
        meaning: 'Show this tool call whole: input, output, outcome. Leaves events and result out unless asked for.',
        default: 'none',
      },
      requestId: {
        meaning: 'For `respond_permission`: which of `actions` is answered. Required there.',
        default: 'none',
      },
      decision: { meaning: 'For `respond_permission`. Required there.', default: 'none' },
      denyMessage: { meaning: 'With `deny`: what Claude is told.', default: '“Permission denied by caller”' },
      interrupt: { meaning: 'With `deny`: also stop the turn.', default: '`false`' },
      permissionOptions: { meaning: 'With `allow`. Each may also be given at top level.', default: 'none' },
      'permissionOptions.updatedInput': {
        meaning: 'Run the tool with this input in place of the whole one asked for.',
        default: 'the input asked for',
      },
      'permissionOptions.updatedPermissions': {
        meaning:
          'Rights to grant with it, for this session; another destination becomes `session`, with a warning. Refused like the option that would grant the same.',
        default: 'none',
      },
      'permissionOptions.always': {
        default: '`false`',
        meaning: 'Also allow, for this session, the rules that Claude Code suggests; never a mode or a directory.',
      },
      'permissionOptions.answers': {
        meaning:
          'Answers to a question: `{"<question text>": "<label or text>"}`, or a list in the order of the questions; several labels as a list. Also accepted inside `updatedInput`.',
        default: 'none',
      },
    },
    returns: CHECK_RETURNS,
  },

  claude_code_session: {
    parameters: {
      action: {
        meaning:
          '`list` sessions, `get` one, `interrupt` its turn (it takes replies afterwards), `cancel` it for good, or `rewind` its files. `diff` shows its work: against the base of its worktree, or since the session began. `apply` takes the work of its worktree to the base, or changes nothing and says what is in the way. `discard` removes its worktree. With `APPROVALS=human`, `apply` and a forced `discard` ask the person.',
      },
      sessionId: { meaning: 'The session; needed for everything but `list`.', default: 'none' },
      includeSensitive: {
        meaning: 'Also show directory, system prompt, agents and further directories. The operator can forbid it.',
        default: '`false`',
      },
      scope: {
        meaning:
          'For `list`: the sessions this server knows, or all that Claude Code keeps on this machine, newest first.',
        default: '`server`',
      },
      projectDirectory: { meaning: 'For `list` with `disk`: only sessions of this directory.', default: 'all' },
      limit: { meaning: 'For `list` with `disk`: the most sessions.', default: '50' },
      offset: {
        meaning: 'For `list` with `disk`: how many to skip. For `diff`: the `nextOffset` of the page before.',
        default: '0',
      },
      maxBytes: { meaning: 'For `diff`: about how long a page may be.', default: '24000' },
      mode: {
        meaning:
          'For `apply`: `merge` the branch into its base, `squash` it into one commit there, or leave a `patch`: uncommitted changes in the checkout it began in. What is not committed in the worktree is committed to its branch first.',
        default: '`merge`',
      },
      message: { meaning: 'For `apply`: of the commits that it makes.', default: 'names the session' },
      force: {
        meaning:
          'For `discard`: also with work that nobody has taken; it is committed, and the branch is kept and named.',
        default: '`false`',
      },
      toUserMessage: {
        meaning: 'For `rewind`: uuid of the user message to go back to. Required there.',
        default: 'none',
      },
      dryRun: {
        meaning:
          'For `rewind`: only say what would be put back. A file that somebody else, or a command, has changed since is named and left, and so is one that this server did not see the session write. With `APPROVALS=human` a real rewind asks the person; the call waits up to 45 s for the answer.',
        default: '`true`',
      },
    },
    returns: {
      status: 'Of a call that failed: the status of the session it was about, if the server knows it.',
      sessions: 'The sessions asked for.',
      'sessions[].sessionId': 'Id of the session.',
      'sessions[].status':
        '`running`, `waiting_permission`, `idle`, `error` or `cancelled`; on disk only for sessions this server knows.',
      'sessions[].createdAt': 'When it was started.',
      'sessions[].lastActiveAt': 'When something last happened.',
      'sessions[].totalTurns': 'Turns so far.',
      'sessions[].totalCostUsd': 'Cost so far, in US dollars.',
      'sessions[].costUnknown':
        '`true` if it cost more than that: a turn whose process was killed never told its cost, and no budget counts it.',
      'sessions[].model': 'Model in use.',
      'sessions[].permissionMode': 'Permission mode in use.',
      'sessions[].backgroundTasks': 'Tasks that run in the background.',
      'sessions[].cancelledReason': 'Why it was cancelled.',
      'sessions[].cancelledSource': 'Who cancelled it.',
      'sessions[].displayText': 'On disk: its title or first words.',
      'sessions[].projectDirectory': 'On disk: its directory.',
      'sessions[].workspace': 'Of a session with a worktree.',
      ...worktreeReturns('sessions[].workspace'),
      worktrees: 'For `list`: worktrees of sessions that the server does not know any more.',
      'worktrees[].sessionId': 'Id of the session; `diff`, `apply` and `discard` take it.',
      ...worktreeReturns('worktrees[]'),
      diff: 'For `diff`: one page of it.',
      'diff.filesChanged': 'How many files are different.',
      'diff.insertions': 'Lines added.',
      'diff.deletions': 'Lines removed.',
      'diff.files': 'On the first page: every file.',
      'diff.files[].path': 'From the top of the checkout.',
      'diff.files[].oldPath': 'Of a renamed file.',
      'diff.files[].status': '`added`, `modified`, `deleted`, `renamed` or `type-changed`.',
      'diff.files[].insertions': 'Lines added.',
      'diff.files[].deletions': 'Lines removed.',
      'diff.files[].isBinary': 'There are no lines to count or show.',
      'diff.diff': 'Unified diff.',
      'diff.totalBytes': 'Of all pages together.',
      'diff.nextOffset': 'Where the next page begins; left out after the last.',
      'sessions[].<option>':
        'The options it was started with, except those that can hold secrets (`env`, `mcpServers`, `settings`).',
      message: 'What was done, in words.',
      isError: '`true` if the call failed.',
      error: '`Error [CODE]: what went wrong and what to do about it`.',
    },
  },
};
