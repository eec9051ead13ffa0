import { z } from 'zod';
import { DENIED_BY, EVENT_TYPES, FILE_STATUSES, REQUEST_KINDS, TOOL_STATUSES } from './enums.ts';
import { LastAction } from './own-action.ts';

/*
 * What the tools answer, one schema for each shape. Views return the inferred types; the tools list shows them in short,
 * the reference in words.
 */

const deniedBy = z.enum(DENIED_BY);

const deniedByWhom = deniedBy.optional().meta({
  note: 'Who denied it: `caller`, `human`, `disallowedTools`, `settings` (rules or hooks of the user), `timeout`, `interrupt` or `policy` (the operator, the permission mode).',
});

export const costUnknown = z.literal(true).optional().meta({
  note: '`true` if the actual cost is higher: the process was killed during a turn, so its cost was never reported. A session with a budget takes no further prompt then.',
});

const requestKind = z.enum(REQUEST_KINDS);

/** A tool call that did not do what it was meant to do. */
export const problem = z.object({
  tool: z.string().meta({ note: 'The tool.' }),
  what: z.string().meta({ note: 'What it was called with, in one line.' }),
  outcome: z.enum(['failed', 'denied']).meta({ note: '`failed` or `denied`.' }),
  by: deniedBy.optional().meta({ note: 'Who denied it, as in `permissionDenials`.' }),
  tail: z.string().meta({ note: 'The end of its output, or what Claude was told; at most 200 characters.' }),
});
export type Problem = z.infer<typeof problem>;

const changedFile = z.object({
  path: z.string().meta({ note: 'Relative to the root of the checkout; absolute outside it.' }),
  insertions: z.number().meta({ note: 'Lines added.' }),
  deletions: z.number().meta({ note: 'Lines removed.' }),
  status: z.enum(FILE_STATUSES).meta({ note: '`added`, `modified`, `deleted`, `renamed` or `type-changed`.' }),
  isBinary: z.boolean().optional().meta({ note: 'With `includeWork: "full"`: there are no lines to count.' }),
});

const attention = z.array(z.string()).optional().meta({
  note: 'Plain facts that contradict or qualify a claim, at most five lines: the last command or check failed, nothing was checked, test files changed, no commit was made although `git commit` was run.',
});

const ranCommand = {
  exitCode: z.number().meta({ note: 'As Claude Code saw it.' }),
  tail: z.string().optional().meta({
    note: 'What its output comes down to: the first failing assertion with expected and actual, or the summary; at most 200 characters.',
  }),
};

const sums = {
  filesChanged: z.number().meta({ note: 'Files that changed.' }),
  insertions: z.number().meta({ note: 'Lines added.' }),
  deletions: z.number().meta({ note: 'Lines removed.' }),
};

/** Evidence of what a call did, regardless of what the answer claims. */
export const work = z.object({
  attention,
  filesChanged: z
    .number()
    .optional()
    .meta({ note: 'Files that changed in the whole checkout; without git, those that the file tools changed.' }),
  insertions: z.number().optional().meta({ note: 'Lines added.' }),
  deletions: z.number().optional().meta({ note: 'Lines removed.' }),
  files: z
    .array(changedFile)
    .optional()
    .meta({ note: 'The most changed files first, as many as fit; all of them with `includeWork: "full"`.' }),
  diff: z.string().optional().meta({ note: 'The whole diff of this call, if it fits in 1,000 bytes.' }),
  commandsRun: z.number().optional().meta({ note: 'Commands that were run.' }),
  commandsFailed: z.number().optional().meta({ note: 'Of which these failed.' }),
  commands: z
    .array(
      z.object({
        command: z.string().meta({ note: 'As it was run.' }),
        exitCode: z.number().optional().meta({ note: 'Of a command that failed.' }),
        failed: z.boolean().meta({ note: 'Whether it failed.' }),
      }),
    )
    .optional()
    .meta({ note: 'With `includeWork: "full"`: every command.' }),
  lastCheck: z
    .object({
      command: z.string().meta({ note: 'The part of the command that is the check.' }),
      exitCode: ranCommand.exitCode,
      afterLastEdit: z.boolean().meta({ note: '`false` if files were changed after it.' }),
      tail: ranCommand.tail,
    })
    .nullable()
    .optional()
    .meta({ note: 'The last command that looks like a test, build, lint or type check; `null` if there was none.' }),
  lastCommand: z
    .object({ command: z.string().meta({ note: 'As it was run.' }), ...ranCommand })
    .optional()
    .meta({ note: 'The last command, unless it is the last check.' }),
  testsChanged: z.array(z.string()).optional().meta({ note: 'Up to five changed files that look like tests.' }),
  git: z
    .object({
      branch: z.string().nullable().meta({ note: 'The branch; `null` if HEAD is detached.' }),
      head: z.string().nullable().meta({ note: 'Its commit; `null` before the first.' }),
      commits: z
        .array(
          z.object({
            sha: z.string().meta({ note: 'Its id.' }),
            subject: z.string().meta({ note: 'The first line of its message.' }),
          }),
        )
        .meta({ note: 'The commits made in this call, newest first.' }),
      uncommitted: z
        .object({
          count: z.number().meta({ note: 'How many files differ from HEAD, including new ones.' }),
          paths: z.array(z.string()).meta({ note: 'Up to five of them.' }),
        })
        .meta({ note: 'What is not committed, whoever changed it.' }),
    })
    .optional()
    .meta({ note: 'The state of the repository, if a tool was used.' }),
  session: z
    .object({ ...sums, commits: z.number().meta({ note: 'Commits made.' }) })
    .optional()
    .meta({ note: 'From the second call on: everything since the session began.' }),
  shared: z.literal(true).optional().meta({
    note: '`true` if another session worked in the same checkout at the same time; some of the changes may be its work.',
  }),
  incomplete: z
    .string()
    .optional()
    .meta({ note: 'Why git could not be used; the files are then those that the file tools reported.' }),
  problems: z.array(problem).optional().meta({ note: 'The last five tool calls that failed or were denied.' }),
});
export type Work = z.infer<typeof work>;

/** As the explicit toolset reports it, which has no way to request all of it. */
const shortWork = work.omit({ commands: true }).extend({
  files: z
    .array(changedFile.omit({ isBinary: true }))
    .optional()
    .meta({ note: 'The most changed files first, as many as fit in 1,200 bytes of report.' }),
});

/** Where an edit would go. */
/** Why a request may no longer mean what it meant when it was asked. */
export const staleChange = z.object({ what: z.enum(['age', 'file', 'directory', 'branch']), text: z.string() });
export type StaleChange = z.infer<typeof staleChange>;

export const stale = z.object({
  ageMs: z.int().nonnegative(),
  changes: z.array(staleChange),
  /** An answer that allows it must give this as `confirm`. */
  digest: z.string(),
});
export type Stale = z.infer<typeof stale>;

export const editPlace = z.object({
  line: z.number().meta({ note: 'The line it begins at.' }),
  before: z.array(z.string()).meta({ note: 'Up to two lines before it.' }),
  after: z.array(z.string()).meta({ note: 'Up to two lines after it.' }),
});
export type EditPlace = z.infer<typeof editPlace>;

/** What both toolsets say about a request, so that it can be decided. */
const decisionAids = {
  inputTruncated: z.literal(true).optional().meta({
    note: '`true` if it is longer than 32,000 characters and truncated; `responseMode` `full` shows all of it.',
  }),
  inputChars: z.number().optional().meta({ note: 'Full length in characters, if truncated.' }),
  cwd: z.string().optional().meta({ note: 'The directory of the session.' }),
  said: z.string().optional().meta({ note: 'What Claude said about this call, in one line.' }),
  edit: editPlace.optional().meta({ note: 'For an edit: where in the file.' }),
  alwaysAllows: z.string().optional().meta({
    note: 'What `always` would allow, for this session only: harmless rules that Claude Code suggests, otherwise exactly this command.',
  }),
  expiresAt: z
    .string()
    .optional()
    .meta({ note: 'In `full` and `claude_get_status`: when it is denied if unanswered.' }),
  expiresInMs: z.number().optional().meta({ note: 'How long that is from now.' }),
  onExpiry: z.literal('deny').optional().meta({ note: '`deny`: what happens then.' }),
  askedPerson: z.literal(true).optional().meta({
    note: '`true` while a person decides: one has a form for it open, or nobody else may answer it. `wait` keeps waiting until they decide or close the form.',
  }),
};

export const toolInput = z.record(z.string(), z.unknown());

export const action = z.object({
  type: requestKind.meta({ note: '`permission`, `plan_review` or `user_question`.' }),
  requestId: z.string().meta({ note: 'What `respond_permission` needs.' }),
  toolName: z.string().meta({ note: 'The tool that needs permission.' }),
  input: toolInput.meta({ note: 'What it was called with.' }),
  summary: z.string().meta({ note: 'The same in one line.' }),
  title: z.string().optional().meta({ note: 'The question as Claude Code would put it.' }),
  description: z.string().optional().meta({ note: 'More about it, from Claude Code.' }),
  plan: z.string().optional().meta({ note: 'For a plan review: the plan.' }),
  questions: z
    .unknown()
    .optional()
    .meta({ note: 'In `full`, for a question: each with its text, header, and options, as in `input`.' }),
  decisionReason: z.string().optional().meta({ note: 'Why Claude Code asks.' }),
  blockedPath: z.string().optional().meta({ note: 'The path that made it ask.' }),
  toolUseID: z.string().meta({ note: 'Id of the tool call.' }),
  agentID: z.string().optional().meta({ note: 'The sub-agent that asks.' }),
  asShown: z.literal(true).optional().meta({
    note: '`true` for an `apply`, `discard` or `rewind` that a person must allow: it can be allowed or denied as shown, not changed.',
  }),
  suggestions: z.array(z.unknown()).optional().meta({
    note: 'In `full`: lasting permissions that Claude Code suggests; `alwaysAllows` says what `always` grants.',
  }),
  createdAt: z.string().optional().meta({ note: 'In `full`: when it was created.' }),
  ...decisionAids,
});
export type Action = z.infer<typeof action>;

/** A request that did not fit into an answer about several sessions. */
const omittedAction = z.object({
  requestId: action.shape.requestId,
  toolName: action.shape.toolName,
  omitted: z.literal(true).meta({
    note: 'In an answer about several sessions: `true` if there was no room for it; check its session alone to see it.',
  }),
});

export const event = z.object({
  id: z.number().meta({ note: 'Increases by one with each event of the session.' }),
  type: z
    .enum(EVENT_TYPES)
    .meta({ note: '`output`, `progress`, `permission_request`, `permission_result`, `result` or `error`.' }),
  data: z.unknown().meta({ note: 'What happened; its shape depends on type and `responseMode`.' }),
  timestamp: z.string().meta({ note: 'When.' }),
  toolName: z.string().optional().meta({ note: 'In `full`: the tool it is about.' }),
  toolUseID: z.string().optional().meta({ note: 'In `full`: id of the tool call it is about.' }),
});
export type EventView = z.infer<typeof event>;

/** The standing rule that decided. */
export const decidingRule = z.object({ id: z.string(), author: z.string() });
export type DecidingRule = z.infer<typeof decidingRule>;

export const permissionDenial = z.looseObject({
  toolName: z.string().meta({ note: 'The tool.' }),
  toolUseID: z.string().optional().meta({ note: 'Id of the tool call.' }),
  what: z.string().optional().meta({ note: 'What it was called with, in one line.' }),
  by: deniedByWhom,
  rule: decidingRule.optional().meta({ note: 'The standing rule that denied it, and who made it.' }),
});
export type PermissionDenial = z.infer<typeof permissionDenial>;

export const callResult = z.object({
  sessionId: z.string().meta({ note: 'Id of the session.' }),
  attention: attention.meta({ note: 'Read this first: `work.attention`, before what Claude says.' }),
  result: z.string().meta({ note: 'The final answer.' }),
  resultChars: z
    .number()
    .optional()
    .meta({ note: 'Length of the full answer if only a part is shown; continue with `resultOffset`.' }),
  isError: z.boolean().meta({ note: 'Whether it ended in an error.' }),
  durationMs: z.number().meta({ note: 'Duration of this call.' }),
  durationApiMs: z.number().optional().meta({ note: 'Of that, time spent on the model.' }),
  numTurns: z.number().meta({ note: 'Turns of this call.' }),
  totalCostUsd: z.number().meta({ note: 'Cost of this call, in US dollars.' }),
  sessionTotalTurns: z.number().meta({ note: 'Turns of the whole session.' }),
  sessionTotalCostUsd: z.number().meta({ note: 'Cost of the whole session. A fork begins with what it inherited.' }),
  costUnknown,
  structuredOutput: z
    .unknown()
    .optional()
    .meta({ note: 'The answer in the shape of `outputFormat`; omitted if longer than `maxBytes`.' }),
  stopReason: z.string().optional().meta({ note: 'Why the model stopped.' }),
  errorSubtype: z.string().optional().meta({
    note: 'The kind of error. Reported by Claude Code: `error_max_turns`, `error_max_budget_usd`, `error_during_execution` (also after an interrupt), `error_max_structured_output_retries`. By the server: `process_exited` (Claude Code ended before it answered), `start_failed` (it could not be started again), `stopped` (it worked for too long), `hub_stopped` (the hub stopped or lost its store while it worked).',
  }),
  usage: z.record(z.string(), z.unknown()).optional().meta({ note: 'Tokens of this call.' }),
  modelUsage: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ note: 'Tokens and cost by model, since the process started.' }),
  permissionDenials: z.array(permissionDenial).optional().meta({
    note: 'What was denied; in `full` also as Claude Code reports it: `tool_name`, `tool_use_id`, `tool_input`.',
  }),
  work: work.optional().meta({ note: 'Evidence of what this call did, regardless of what the answer claims.' }),
});
export type CallResult = z.infer<typeof callResult>;

/** One tool call whole, as `pollOptions.toolUseID` asks for it. */
export const toolCall = z.object({
  toolUseID: z.string().meta({ note: 'Its id.' }),
  toolName: z.string().meta({ note: 'The tool.' }),
  input: toolInput.optional().meta({ note: 'What it ran with; only on the first page.' }),
  output: z.string().optional().meta({ note: 'Its output, starting at `resultOffset`.' }),
  outputChars: z.number().optional().meta({ note: 'Length of the full output.' }),
  outcome: z.enum(TOOL_STATUSES).meta({ note: '`running`, `awaiting_permission`, `completed`, `denied` or `failed`.' }),
  exitCode: z.number().optional().meta({ note: 'Of a command that failed.' }),
  deniedBy: deniedBy.optional().meta({ note: 'Who denied it, as in `permissionDenials`.' }),
  inputChanged: z.literal(true).optional().meta({ note: '`true` if an answer changed the input.' }),
});
export type ToolCallView = z.infer<typeof toolCall>;

export const compactStatus = z.enum(['running', 'waiting_permission', 'idle', 'error', 'cancelled']);

/** What a check answers, and a start or a reply after its wait. */
export const checkAnswer = z.object({
  sessionId: z.string().meta({ note: 'Id of the session; empty if it could not be started.' }),
  status: compactStatus.meta({
    note: '`running`, `waiting_permission` (something in `actions` waits for an answer), `idle`, `error` or `cancelled`.',
  }),
  lastAction: LastAction.optional(),
  pollInterval: z.number().optional().meta({
    note: 'How many milliseconds to wait before the next `poll`: 3000 while running, 1000 while waiting for an answer; absent at rest.',
  }),
  resumeToken: z.string().optional().meta({
    note: 'From start and reply, if the operator set `RESUME_SECRET`: required for a later reply to this session from disk.',
  }),
  effective: z
    .string()
    .optional()
    .meta({ note: 'From start and reply: permission mode, directory and accepted rules of the session, in one line.' }),
  warnings: z.array(z.string()).optional().meta({
    note: 'Things to be aware of, one line each: skipped settings of an untrusted directory, rules that Claude Code ignores, permissions granted for the session only.',
  }),
  workspace: z
    .object({
      path: z.string().meta({ note: 'Where the worktree is.' }),
      branch: z.string().meta({ note: 'Its branch.' }),
      base: z.string().meta({ note: 'What it started from, and where `apply` brings its work.' }),
    })
    .optional()
    .meta({ note: 'For a start with a worktree.' }),
  events: z.array(event).optional().meta({ note: 'Events starting at the cursor.' }),
  nextCursor: z.number().meta({ note: 'Cursor for the next events.' }),
  cursorResetTo: z.number().optional().meta({ note: 'Events before this one were dropped unread.' }),
  truncated: z.literal(true).optional().meta({ note: 'Whether something was truncated.' }),
  truncatedFields: z.array(z.string()).optional().meta({ note: 'What was truncated.' }),
  actions: z
    .array(z.union([action, omittedAction]))
    .optional()
    .meta({ note: 'One for each unanswered request.' }),
  result: callResult.optional().meta({ note: 'At rest: how the last call ended.' }),
  toolCall: toolCall.optional().meta({ note: 'The tool call that `toolUseID` asked for.' }),
  activity: z.string().optional().meta({
    note: 'One line on what was done since the prompt and what is happening now; in `minimal` not beside `actions`.',
  }),
  backgroundTasks: z.number().optional().meta({ note: 'Tasks still running in the background, if any.' }),
  availableTools: z
    .array(z.object({ name: z.string(), category: z.string(), description: z.string().optional() }))
    .optional()
    .meta({ note: 'The tools of this session: `name`, `category`, `description`.' }),
  cancelledAt: z.string().optional().meta({ note: 'When it was cancelled.' }),
  cancelledReason: z.string().optional().meta({ note: 'Why.' }),
  cancelledSource: z.string().optional().meta({ note: 'By whom: `caller`, `cleanup`, `shutdown`.' }),
  lastEventId: z.number().optional().meta({ note: 'In `full`: id of the newest event.' }),
  lastToolUseId: z.string().optional().meta({ note: 'In `full`: id of the newest tool call.' }),
  quietMs: z
    .number()
    .optional()
    .meta({ note: 'Milliseconds since the last output from Claude Code, once it has been silent for 30 s.' }),
});
export type CheckAnswer = z.infer<typeof checkAnswer>;

/** One of several sessions in an answer: what a check of it answers, or why it cannot be checked. */
export const checkedSession = checkAnswer.partial().extend({
  sessionId: checkAnswer.shape.sessionId,
  isError: z.literal(true).optional().meta({ note: '`true` for a session that is not known.' }),
  error: z.string().optional().meta({ note: 'Why: `SESSION_NOT_FOUND`.' }),
});
export type CheckedSession = z.infer<typeof checkedSession>;

/** What a start of several attempts answers: `sessionId` and `status` are those of the first. */
export const attemptsAnswer = checkAnswer
  .pick({ sessionId: true, status: true, effective: true, warnings: true })
  .extend({
    attempts: z.array(checkedSession).meta({
      note: 'For a start with `attempts`: one for each, with its `sessionId`, `workspace` and `status`; after a wait, with the fields of a check.',
    }),
  });
export type AttemptsAnswer = z.infer<typeof attemptsAnswer>;

export const explicitStatus = z.enum(['running', 'waiting_for_input', 'completed', 'interrupted', 'error']);

export const pendingInput = z.object({
  inputId: z.string().meta({ note: 'What `claude_respond` needs.' }),
  type: requestKind.meta({ note: '`permission`, `plan_review` or `user_question`.' }),
  toolName: z.string().meta({ note: 'The tool that needs permission.' }),
  toolInput: toolInput.meta({ note: 'What it was called with.' }),
  description: z.string().meta({ note: 'The same in words.' }),
  ...decisionAids,
  inputTruncated: decisionAids.inputTruncated.meta({
    note: '`true` if it is longer than 32,000 characters and truncated; `inputId` shows all of it.',
  }),
  alwaysAllows: decisionAids.alwaysAllows.meta({
    note: 'What “always allow” would allow, for this session only.',
  }),
  askedPerson: decisionAids.askedPerson.meta({
    note: '`true` while a person has a form for it open: a wait continues until they decide or close it.',
  }),
});
export type PendingInput = z.infer<typeof pendingInput>;

export const toolUseEvent = z.object({
  toolName: z.string().meta({ note: 'Name of the tool.' }),
  status: z.enum([...TOOL_STATUSES, 'awaiting_answer']).meta({
    note: '`running`, `awaiting_permission`, `awaiting_answer` (a question), `completed`, `denied` or `failed`.',
  }),
  input: z.string().optional().meta({ note: 'What it ran with, in one line.' }),
  inputChanged: z.literal(true).optional().meta({ note: '`true` if an answer changed the input.' }),
  answer: z.string().optional().meta({ note: 'Of a question: what it was answered, in the order of its questions.' }),
  error: z
    .string()
    .optional()
    .meta({ note: 'The end of its output when it failed, or what Claude was told when it was denied.' }),
  deniedBy: deniedByWhom,
  inputId: z.string().optional().meta({ note: 'While it waits: which of `pendingInputs` it is.' }),
});
export type ToolUseEvent = z.infer<typeof toolUseEvent>;

/** What `claude_get_status` answers, and the other explicit tools after their wait. */
export const statusAnswer = z.object({
  sessionId: z.string().meta({ note: 'Id of the session.' }),
  status: explicitStatus.meta({ note: '`running`, `waiting_for_input`, `completed`, `error` or `interrupted`.' }),
  effective: z.string().optional().meta({
    note: 'From `claude_create_session`: permission mode, directory and accepted rules of the session, in one line.',
  }),
  warnings: z
    .array(z.string())
    .optional()
    .meta({ note: 'Things to be aware of, such as rules that Claude Code ignores; omitted if there are none.' }),
  attention: attention.meta({ note: 'Read this first: `work.attention`, before what Claude says.' }),
  result: z.string().optional().meta({ note: 'The final answer, at rest.' }),
  work: shortWork
    .optional()
    .meta({ note: 'At rest: evidence of what was done, regardless of what the result claims.' }),
  recentOutput: z.array(z.string()).meta({
    note: 'The last lines of what Claude has written since the last message, including text still being written.',
  }),
  pendingInputs: z.array(pendingInput).meta({ note: 'One for each unanswered request.' }),
  toolUseEvents: z.array(toolUseEvent).meta({ note: 'The tools used since the last message.' }),
  costUsd: z.number().optional().meta({ note: 'Cost of the session so far, in US dollars; omitted until known.' }),
  costUnknown,
  turnCount: z.number().meta({ note: 'Turns of the session so far.' }),
  error: z.string().optional().meta({ note: 'Why the session or the call failed.' }),
});
export type StatusAnswer = z.infer<typeof statusAnswer>;
