/**
 * What is promised, one sentence each. A test says with `verifies` which of them it shows; `requirements.test.ts` fails
 * when one is not shown in a toolset that it applies to.
 */

import { defineRequirements } from '../harness/requirements.ts';

export const { requirements, verifies } = defineRequirements({
  both: {
    // ── the tools ──────────────────────────────────────────────────────────────────────────────────────────────────
    'tools.few': 'the tools are four, or six with one verb each, and none changes the rights of the server',
    'tools.described': 'every tool has a title, an output schema and all four annotations',
    'tools.size': 'what a model reads of the tools list is at most 7,500 bytes, of the explicit one 3,600',
    'errors.as-results': 'a bad argument, an unknown session, an unknown tool is a tool result with "Error [CODE]: …"',
    'errors.unknown-parameter': 'an unknown parameter is INVALID_ARGUMENT that names it and the nearest known one',

    // ── starting ───────────────────────────────────────────────────────────────────────────────────────────────────
    'start.returns-at-once': 'starting returns sessionId and status "running" while Claude works',
    'start.one-required-parameter': 'prompt is all that is needed, and it may begin with dashes',
    'start.blank-prompt': 'a blank prompt is refused',
    'start.default-directory': 'without a directory the session works in that of the server',
    'start.options': 'model, directory, turns and refused tools are those that were asked for',
    'start.allowed-tools': 'a tool in allowedTools passes without a request',
    'start.disallowed-wins': 'disallowedTools wins over allowedTools',
    'start.bypass': 'a start that asks nothing is refused unless the operator allows it',
    'start.no-such-directory': 'a directory that does not exist is an error of the call that names it',
    'start.no-such-executable': 'an executable that does not exist is an error of the call, with an empty sessionId',
    'start.exits-at-once': 'an executable that ends at once is an error of the call with what it said',
    'start.hangs': 'a start that is not reported in time is TIMEOUT, and its process is ended',

    // ── going on ───────────────────────────────────────────────────────────────────────────────────────────────────
    'reply.same-process': 'a reply to a live session goes to the process it has',
    'reply.new-result': 'a reply starts a new call: the old answer is not taken for the new one',
    'reply.queue': 'messages to a working session are handed over at once and taken up by it, in order',
    'reply.queue-interrupted': 'a message that waits when the turn is interrupted is taken up then',
    'reply.queue-late': 'a message at the moment the turn ends or is interrupted is not lost',
    'reply.unknown-session': 'a session that is not known is SESSION_NOT_FOUND with a hint',
    'reply.after-crash': 'a reply to a session whose process was killed resumes it with its options and history',
    'reply.after-failure': 'a turn that fails says why, and the session takes replies',
    'disk.resumes': 'a session of an earlier server goes on in its own directory',
    'disk.unknown': 'an id that Claude Code does not have is SESSION_NOT_FOUND',
    'disk.vanished-directory': 'a recorded directory that is gone is an error that names it',
    'disk.no-directory': 'a transcript that tells no directory is an error that says what to do',

    // ── looking and waiting ────────────────────────────────────────────────────────────────────────────────────────
    'look.at-once': 'a look at a session answers at once with what there is so far',
    'wait.until-rest': 'a wait answers when the session is at rest',
    'wait.until-request': 'a wait answers when a request is open',
    'wait.time-up': 'a wait reports "running" when its time is up',
    'wait.progress': 'a wait sends progress with rising numbers and readable lines, at least every 5 s',
    'wait.client-cancels': 'cancelling a wait leaves the session alone',
    'wait.two-at-once': 'two waits on one session both get the answer',

    // ── requests ───────────────────────────────────────────────────────────────────────────────────────────────────
    'request.permission': 'a tool that needs permission is a request with all a caller has to know; allow lets it run',
    'request.deny': 'deny keeps the tool from running and tells Claude the message',
    'request.deny-default': 'without a message Claude is told "Permission denied by caller"',
    'request.updated-input': 'updatedInput is what runs',
    'caller.one-call-per-decision':
      'a job with one question and three permissions takes five calls that follow the texts',
    'work.report':
      'a result reports the files that changed, by git, the commands, the last check and whether an edit came after it',
    'caller.evidence':
      'at rest the answer tells which tool calls failed or were denied, by whom, whatever Claude claims',
    'caller.input-changed': 'what updatedInput changed is told in the activity or tools, the event and the audit log',
    'caller.decision-aids':
      'a request tells directory, what Claude said, expiry and its consequence, what always allows, and the place of an edit',
    'start.effective': 'the answer of a start echoes permission mode, directory and rules in one line',
    'request.shown-whole':
      'what is to be approved is shown whole up to 32,000 characters; beyond, it says so and is shown whole on demand',
    'request.shortened-input':
      'updatedInput that equals what was shown changes nothing; one with a shortening mark is INVALID_ARGUMENT',
    'request.disallowed-input': 'disallowedTools refuses even what is approved',
    'request.once': 'a request is answered once: a second answer, or an unknown id, is PERMISSION_REQUEST_NOT_FOUND',
    'request.time-out': 'nobody answers in time: denied with words that say so, and a late answer is not found',
    'request.parallel': 'requests of parallel tool calls are open side by side and answered in any order',
    'request.sub-agents': 'requests of sub-agents are open side by side',
    'request.audited': 'each outcome is in the audit log with who decided',
    'request.plan': 'a plan that Claude wrote down is a plan review with its text; allow leaves plan mode for good',
    'request.plan-said': 'a plan that Claude only said is a plan review with its text all the same',
    'request.plan-deny': 'a refused plan tells Claude why, stays in plan mode and comes back with another plan',
    'request.question-map': 'a question is answered by a map from question to label or text',
    'request.question-list': 'questions are answered by a list in their order, several labels as a list',
    'request.question-inside-input': 'answers inside updatedInput count as those beside it, as a map or a list',
    'request.question-needs-answer': 'a question is not answered by a bare allow, a wrong question or too few answers',
    'request.question-not-approved': 'a question does not answer itself when its tool is in allowedTools',
    'request.needs-parameters':
      'an answer without its id or decision, or with what does not belong, is INVALID_ARGUMENT',

    // ── sessions and their life ────────────────────────────────────────────────────────────────────────────────────
    'session.disk-list': 'every session that Claude Code has on this machine is listed, newest first',
    'session.disk-list-allowed': 'sessions outside the allowed directories are neither listed nor opened',
    'session.interrupt': 'interrupt stops the turn and its command; the session takes replies',
    'session.interrupt-request': 'interrupt settles open requests',
    'session.interrupt-rest': 'interrupt of a session at rest changes nothing',
    'life.crash': 'a process that dies at work is "error" with how it ended, its requests settled',
    'life.park': 'a process at rest is closed after the time for parking, and a reply resumes it with its history',
    'life.park-background': 'a session with a background task is not parked',
    'life.background-wakes': 'when a background command ends the session works again by itself and has a new result',
    'life.background-agent':
      'a session stays running through the first result while a sub-agent works; the last result counts, with sums',
    'life.ttl': 'a session at rest for its time is forgotten by the server, not on disk',
    'life.running-max': 'a session that works too long is stopped, says why, and takes messages',
    'life.max-sessions-parks': 'a start beyond the limit parks the longest idle session',
    'life.max-sessions-busy': 'a start beyond the limit is TOO_MANY_SESSIONS when all work',
    'life.held': 'a session that another Claude Code holds is SESSION_BUSY with its pid',

    // ── totals ─────────────────────────────────────────────────────────────────────────────────────────────────────
    'totals.hot-replies': 'cost and turns are right over replies to a live process',
    'totals.parked': 'they are right over a resume after parking',
    'totals.killed': 'they are right over a resume after the process was killed',
    'totals.disk': 'they are right over a resume from disk',
  },

  compact: {
    'tools.default': 'without a word about toolsets it is this one',
    'tools.builtin-names': 'the description of claude_code lists the built-in tools of Claude Code',
    'tools.real-names': 'after the first start the list is the real one, and tools/list_changed is announced',
    'errors.given-twice': 'a key given nested and flat with different values is INVALID_ARGUMENT',
    'errors.flat-form': 'a nested key given at top level means the same',

    'start.wait': 'with waitMs the answer of the start carries what a check would say',
    'start.resume-token':
      'a resumeToken is returned only when a secret is set, and is the HMAC-SHA256 of the session id',
    'start.structured-output': 'with outputFormat the result carries structuredOutput',

    'reply.busy': 'a reply to a running or waiting session is SESSION_BUSY',
    'reply.busy-race': 'of two replies at once exactly one is taken',
    'reply.switch': 'model and permissionMode of a reply hold from this turn on',
    'reply.wait': 'with waitMs the reply answers as a check does',
    'fork.new-session': 'a fork is a new session with its own id and the history of the original',
    'fork.original-untouched': 'the original of a fork stays as it is, and takes replies of its own',
    'fork.while-running': 'a running session can be forked and runs on',
    'disk.off': 'without the switch a forgotten session is SESSION_NOT_FOUND with what to set',
    'disk.no-secret': 'with the switch but no secret disk resume is PERMISSION_DENIED with what to set',
    'disk.token': 'a wrong or missing token is PERMISSION_DENIED',

    'check.poll-interval': 'pollInterval is 3000 while running, 1000 while waiting, absent at rest',
    'check.event-ids': 'event ids rise by one, and a cursor reads on where the last answer ended',
    'check.tool-call': 'toolUseID shows one tool call whole, page by page, and full says nothing twice',
    'check.cursor-without-events': 'a poll told includeEvents:false still advances nextCursor',
    'check.cursor-reset':
      'a cursor before what is kept is answered with cursorResetTo; requests and results are dropped last',
    'check.minimal-view': 'minimal events carry text, tool name with one-line summary, and a short head of results',
    'check.full-view': 'full events carry what the SDK sent, progress and results too',
    'check.max-events': 'maxEvents cuts, says so, and the cursor reads on',
    'check.max-bytes-moves-on': 'a maxBytes smaller than one event still moves on',
    'check.long-result': 'a long answer is cut with resultChars, and resultOffset reads on to its end',
    'check.partial-merged': 'partial messages are merged and nothing of them is missed',
    'check.include-switches': 'the include options leave parts in or out',
    'check.activity': 'activity is one line of at most 200 characters that counts the tools',
    'check.available-tools': 'includeTools lists the tools of the session with descriptions and categories',
    'check.result-fields': 'the result carries the figures of the call and of the session',
    'check.background-tasks': 'a session at rest with a background task shows backgroundTasks',
    'check.no-events': 'a wait answers without events',
    'wait.session-cancelled': 'a wait ends when the session is cancelled',
    'wait.cheap':
      'a 40-tool task costs a waiting caller at most 3 calls and 2,000 bytes; its minimal view is at most 1/5 of the full one',

    'request.deny-interrupt': 'deny with interrupt also stops the turn; the session takes replies',
    'request.always-allow': 'updatedPermissions with the suggestion stops the next question',
    'request.never-expires': 'permissionRequestTimeoutMs 0 never expires',
    'request.agent-id': 'requests of sub-agents carry agentID',
    'request.events': 'each request and each outcome is an event, the outcome with its source',

    'session.list': 'list and get show the sessions of the server with totals, and no secrets',
    'session.sensitive': 'includeSensitive adds directory and system prompt, but never env, servers or settings',
    'session.rewind': 'rewind says what it would put back, and with dryRun false does it',
    'session.cancel': 'cancel ends the process and all it started, and says when, why and by whom',
    'session.cancel-final': 'a cancelled session takes no replies, and what comes late changes nothing',
    'session.cancel-request': 'cancel denies open requests; answering them later is PERMISSION_REQUEST_NOT_FOUND',
    'life.not-persistent': 'a session without a transcript is not parked',
    'totals.call': 'cost and turns of each call are its own share',
    'totals.fork': 'the sums of a fork start with what it inherited, those of the original stay',
  },

  explicit: {
    'tools.list-stays': 'the list is always the same, and tools/list_changed is not announced',
    'create.configured-mode': 'without permissionMode Claude Code runs as it is configured; given, it counts more',
    'create.skip-permissions':
      'dangerouslySkipPermissions asks nothing; with another permissionMode it is INVALID_ARGUMENT',
    'create.appended-prompt': 'systemPrompt is added to that of Claude Code',
    'message.from-terminal': 'a message to a session made in a terminal resumes it in its own directory',
    'message.together': 'messages that come together start one process, and all are heard',
    'message.forgotten': 'a message to a session that the server has forgotten resumes it',
    'status.whole': 'the answer of claude_get_status is whole, from the first request to the result',
    'status.since-message': 'output and tools are those since the last message, or all of them on demand',
    'status.output': 'outputLines bounds recentOutput, the last lines of what Claude said',
    'status.long-output': 'long output does not fill the answer, and the result comes whole',
    'status.tool-uses': 'toolUseEvents tell running, completed, denied and failed apart, also those of sub-agents',
    'status.interrupted':
      'an interrupted session is "interrupted" until the next message, its open tools failed or denied',
    'list.begun': 'a live session is listed before its transcript is written',
    'list.active': 'isActive and activeStatus tell which sessions have a process of this server',
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
