/**
 * What the server promises, one sentence each. A test names what it verifies with `verifies`; `requirements.test.ts`
 * fails when a requirement is not verified in a toolset that it applies to.
 */

import { defineRequirements } from '../harness/requirements.ts';

export const { requirements, verifies } = defineRequirements({
  both: {
    // ── the tools ──────────────────────────────────────────────────────────────────────────────────────────────────
    'tools.few': 'there are four tools, or six with one verb each, and none changes the server’s own rules',
    'tools.described': 'every tool has a title, a description, an output schema and all four annotations',
    'tools.size': 'the tool list takes a model at most 7,500 bytes to read, the explicit one 4,000',
    'errors.as-results':
      'a bad argument, an unknown session or an unknown tool is a tool result with "Error [CODE]: …"',
    'errors.unknown-parameter':
      'an unknown parameter is INVALID_ARGUMENT, and the error names it and any similar known one',

    // ── starting ───────────────────────────────────────────────────────────────────────────────────────────────────
    'start.returns-at-once': 'a start returns the sessionId and status "running" while Claude works',
    'start.one-required-parameter': 'only a prompt is required, and it may begin with dashes',
    'start.blank-prompt': 'a blank prompt is refused',
    'start.default-directory': 'without a directory, the session works in the server’s own',
    'start.options': 'the model, directory, turn limit and disallowed tools are those that were requested',
    'start.allowed-tools': 'a tool in allowedTools runs without a request',
    'start.disallowed-wins': 'disallowedTools takes precedence over allowedTools',
    'start.bypass': 'a start that bypasses permissions is refused unless the operator allows it',
    'start.no-such-directory':
      'a directory that does not exist, or is a file, fails the call with an error that names it',
    'start.no-such-executable': 'an executable that does not exist fails the call, with an empty sessionId',
    'start.exits-at-once': 'an executable that exits at once fails the call with its error output',
    'start.hangs': 'a start that takes too long is TIMEOUT, and its process is ended',

    // ── replying ───────────────────────────────────────────────────────────────────────────────────────────────────
    'reply.same-process': 'a reply to a live session goes to its existing process',
    'reply.new-result': 'after a reply, the previous answer is not mistaken for the new one',
    'reply.queue': 'messages to a running session are passed on at once, and Claude gets them in order',
    'reply.queue-interrupted': 'a message that is queued when the turn is interrupted is processed next',
    'reply.queue-late': 'a message that arrives just as the turn ends or is interrupted is not lost',
    'reply.unknown-session': 'an unknown session is SESSION_NOT_FOUND, with a hint',
    'reply.after-crash': 'a reply to a session whose process was killed resumes it with its options and history',
    'reply.after-failure': 'a turn that fails says why, and the session accepts further replies',
    'disk.resumes': 'a session of an earlier server resumes in its own directory',
    'disk.unknown': 'an id unknown to Claude Code is SESSION_NOT_FOUND',
    'disk.vanished-directory': 'if the recorded directory no longer exists, the error names it',
    'disk.no-directory': 'a transcript without a directory cannot be resumed, and the error says what to do instead',

    // ── status and waiting ─────────────────────────────────────────────────────────────────────────────────────────
    'look.at-once': 'a status check returns at once with what there is so far',
    'wait.until-rest': 'a wait returns when the session is at rest',
    'wait.until-request': 'a wait returns when a request is open',
    'wait.time-up': 'a wait returns "running" when its time is up',
    'wait.progress': 'a wait sends progress with increasing numbers and readable messages, at least every 5 s',
    'wait.client-cancels': 'cancelling a wait does not affect the session',
    'wait.two-at-once': 'two concurrent waits on one session both get the answer',

    // ── requests ───────────────────────────────────────────────────────────────────────────────────────────────────
    'request.permission':
      'a tool that needs permission becomes a request with everything a caller needs to know, and runs if allowed',
    'request.deny': 'a denied tool does not run, and Claude gets the caller’s message',
    'request.deny-default': 'without a message, Claude is told "Permission denied by caller"',
    'request.updated-input': 'updatedInput replaces what runs',
    'caller.one-call-per-decision':
      'a task with one question and three permissions takes a caller that follows the instructions five calls',
    'work.report':
      'a result reports the changed files according to git, the commands, and the last check and whether it followed the last edit',
    'work.attention':
      'false claims are contradicted before the claim: a commit that failed, tests that never ran, a test that was changed instead',
    'caller.evidence':
      'at rest, the answer lists the tool calls that failed or were denied, and by whom, whatever Claude claims',
    'caller.each-thing-once':
      'no answer of a call that waited repeats a question, a command, what Claude said or what failed',
    'caller.claude-is-told': 'Claude is told when its input was changed, and what was said with an allow',
    'caller.denied-by-interrupt': 'a call that waited when its turn was interrupted was denied by the interrupt',
    'caller.input-changed':
      'input changed by updatedInput is reported in the activity and event, or in the tool uses, and in the audit log',
    'caller.decision-aids':
      'a request has the directory, what Claude said, when it expires and what then happens, what "always" allows, and the place of an edit',
    'start.effective': 'a start returns the effective permission mode, directory and rules in one line',
    'request.shown-whole':
      'a request shows its input in full up to 32,000 characters; beyond that it says so, and shows it in full on demand',
    'request.shortened-input':
      'an updatedInput that equals the truncated input changes nothing; any other with a truncation mark is INVALID_ARGUMENT',
    'request.disallowed-input': 'an answer cannot allow what disallowedTools forbids',
    'request.once':
      'a request can be answered once: a second answer, or an unknown id, is PERMISSION_REQUEST_NOT_FOUND',
    'request.time-out':
      'a request that nobody answers in time is denied, Claude is told so, and a late answer is not found',
    'request.parallel': 'requests of parallel tool calls are open side by side, and can be answered in any order',
    'request.sub-agents': 'requests of several sub-agents can be open at once',
    'request.audited': 'each outcome is in the audit log, with who decided',
    'request.plan':
      'a plan that Claude wrote to a file is a plan review with its text; allowing it leaves plan mode for good',
    'request.plan-said': 'a plan that Claude only put in its call or its message is a plan review with its text too',
    'request.plan-deny': 'after a refused plan Claude is told why, stays in plan mode and can present another plan',
    'request.question-map': 'a question can be answered with a map from question to label or text',
    'request.question-list':
      'questions can be answered with a list in their order, several labels as a list of their own',
    'request.question-inside-input': 'answers inside updatedInput count like those beside it, as a map or a list',
    'request.question-needs-answer': 'a bare allow, an answer to another question or too few answers are refused',
    'request.question-not-approved': 'a question is asked even if its tool is in allowedTools',
    'request.needs-parameters':
      'an answer without its id or decision, or with parameters that do not apply, is INVALID_ARGUMENT',

    // ── sessions and their lifetime ────────────────────────────────────────────────────────────────────────────────
    'session.disk-list': 'every Claude Code session on this machine is listed, newest first',
    'session.disk-list-allowed': 'sessions outside the allowed directories are neither listed nor opened',
    'session.interrupt': 'interrupt stops the turn and its command, and the session accepts further replies',
    'session.interrupt-request': 'interrupt settles open requests',
    'session.interrupt-rest': 'interrupting a session at rest changes nothing',
    'life.crash':
      'a session whose process dies during a turn is in "error" with the cause, and its requests are settled',
    'life.park':
      'the process of a session at rest is closed after the parking time, and a reply resumes it with its history',
    'life.park-background': 'a session with a background task is not parked',
    'life.background-wakes': 'when a background command ends, the session resumes work by itself and has a new result',
    'life.background-agent':
      'a session stays running past its first result while a sub-agent works; the last result counts, with totals',
    'life.ttl': 'a session at rest for its TTL is forgotten by the server, but kept on disk',
    'life.running-max': 'a session that works too long is stopped, says why, and accepts messages',
    'life.max-sessions-parks': 'a start beyond the session limit parks the session that has been idle longest',
    'life.max-sessions-busy': 'a start beyond the session limit is TOO_MANY_SESSIONS when all are working',
    'life.held': 'a session that is open in another Claude Code is SESSION_BUSY with its pid',

    // ── totals ─────────────────────────────────────────────────────────────────────────────────────────────────────
    'totals.hot-replies': 'cost and turns add up across replies to a live process',
    'totals.parked': 'cost and turns add up across a resume after parking',
    'totals.killed': 'cost and turns add up across a resume after the process was killed',
    'totals.disk': 'the cost adds up across a resume from disk',
  },

  compact: {
    'tools.default': 'this toolset is the default',
    'tools.builtin-names': 'the description of claude_code lists Claude Code’s built-in tools',
    'tools.real-names': 'after the first start it lists the actual tools, and tools/list_changed is announced',
    'errors.given-twice': 'a key given both nested and flat with different values is INVALID_ARGUMENT',
    'errors.flat-form': 'a nested key given at the top level means the same',

    'start.wait': 'with waitMs, a start returns what a check would',
    'start.resume-token':
      'a resumeToken is returned only when a secret is set, and is the HMAC-SHA256 of the session id',
    'start.structured-output': 'with outputFormat, the result has structuredOutput',

    'reply.busy': 'a reply to a running or waiting session is SESSION_BUSY',
    'reply.busy-race': 'of several replies at once exactly one is accepted',
    'reply.switch': 'a model or permissionMode given with a reply applies from that turn on',
    'reply.wait': 'with waitMs, a reply returns what a check would',
    'fork.new-session': 'a fork is a new session with its own id and the history of the original',
    'fork.original-untouched': 'a fork leaves the original unchanged, and the original still accepts replies',
    'fork.while-running': 'a running session can be forked, and keeps running',
    'disk.off': 'with disk resume off, a forgotten session is SESSION_NOT_FOUND, and the error says what to set',
    'disk.no-secret':
      'with disk resume on but no secret, a resume is PERMISSION_DENIED, and the error says what to set',
    'disk.token': 'a wrong or missing token is PERMISSION_DENIED',

    'check.poll-interval': 'pollInterval is 3000 while running, 1000 while waiting, absent at rest',
    'check.event-ids': 'event ids increase by one, and a cursor continues where the last answer ended',
    'check.tool-call': 'toolUseID returns one tool call in full, page by page, and full events repeat nothing',
    'check.cursor-without-events': 'a poll with includeEvents:false still advances nextCursor',
    'check.cursor-reset':
      'a cursor before the first kept event is answered with cursorResetTo; requests and results are dropped last',
    'check.minimal-view': 'minimal events have text, tool names with one-line summaries, and the beginning of results',
    'check.full-view': 'full events have what the SDK sent, including progress and results',
    'check.max-events': 'maxEvents truncates the events and says so, and the cursor continues from there',
    'check.max-bytes-moves-on': 'a maxBytes smaller than one event still makes progress',
    'check.long-result': 'a long result is truncated with resultChars, and resultOffset reads the rest',
    'check.partial-merged': 'partial messages are merged without losing text',
    'check.include-switches': 'the include options add or omit parts of the answer',
    'check.activity': 'activity is one line of at most 200 characters, with a count of the tools',
    'check.available-tools': 'includeTools lists the session’s tools with descriptions and categories',
    'check.result-fields': 'the result has the figures of the call and of the session',
    'check.background-tasks': 'a session at rest with a background task has backgroundTasks',
    'check.no-events': 'a wait returns no events',
    'wait.session-cancelled': 'a wait ends when the session is cancelled',
    'wait.cheap':
      'a 40-tool task takes a waiting caller at most 3 calls and 2,000 bytes; the minimal view is at most 1/5 of the full one',

    'request.deny-interrupt': 'deny with interrupt also stops the turn; the session accepts further replies',
    'request.always-allow': 'after an allow with updatedPermissions, matching tool calls are not asked about',
    'request.never-expires': 'with permissionRequestTimeoutMs 0 a request never expires',
    'request.agent-id': 'requests of sub-agents have an agentID',
    'request.events': 'each request and each outcome is an event, the outcome with its source',

    'session.list': 'list and get show the server’s sessions with totals, and no secrets',
    'session.sensitive':
      'includeSensitive adds directory, system prompt and agents, but never env, MCP servers or settings',
    'session.rewind': 'rewind reports what it would restore, and with dryRun false restores it',
    'session.cancel': 'cancel ends the process and everything it started, and reports when, why and by whom',
    'session.cancel-final': 'a cancelled session accepts no replies, and late output changes nothing',
    'session.cancel-request': 'cancel denies open requests; a later answer is PERMISSION_REQUEST_NOT_FOUND',
    'life.not-persistent': 'a session without a transcript is not parked',
    'totals.call': 'each call reports its own cost and turns',
    'totals.fork': 'the totals of a fork start with what it inherited, and those of the original stay the same',
  },

  explicit: {
    'tools.list-stays': 'the tool list never changes, and tools/list_changed is not announced',
    'create.configured-mode':
      'without permissionMode Claude Code uses its configured mode; one that is given takes precedence',
    'create.skip-permissions':
      'dangerouslySkipPermissions asks nothing; with another permissionMode it is INVALID_ARGUMENT',
    'create.appended-prompt': 'systemPrompt is appended to Claude Code’s own',
    'message.from-terminal': 'a message to a session started in a terminal resumes it in its own directory',
    'message.together': 'concurrent messages start one process, and all are delivered',
    'message.forgotten': 'a message to a session that the server has forgotten resumes it',
    'status.whole': 'claude_get_status returns the full state, from the first request to the result',
    'status.since-message': 'output and tool uses are those since the last message, or all of them on request',
    'status.output': 'outputLines limits recentOutput to the last lines of what Claude said',
    'status.long-output': 'long output does not fill the answer, and the result is complete',
    'status.tool-uses': 'toolUseEvents distinguish running, completed, denied and failed, also for sub-agents',
    'status.interrupted':
      'an interrupted session is "interrupted" until the next message, its open tools failed or denied',
    'list.begun': 'a running session is listed before its transcript is written',
    'list.active': 'isActive and activeStatus show which sessions have a process of this server',
  },

  engine: [
    'reply.queue-interrupted',
    'reply.queue-late',
    'reply.after-crash',
    'disk.vanished-directory',
    'request.parallel',
    'request.sub-agents',
    'request.disallowed-input',
    'request.time-out',
    'request.audited',
    'life.crash',
    'life.park',
    'life.park-background',
    'life.background-wakes',
    'life.background-agent',
    'life.ttl',
    'life.max-sessions-parks',
    'life.max-sessions-busy',
    'totals.hot-replies',
    'totals.parked',
    'totals.killed',
    'totals.disk',
  ],

  protocol: [
    'tools.few',
    'tools.described',
    'tools.real-names',
    'tools.list-stays',
    'errors.as-results',
    'errors.unknown-parameter',
    'wait.until-rest',
    'wait.until-request',
    'wait.progress',
    'wait.client-cancels',
    'request.permission',
    'request.question-list',
  ],
});
