/**
 * What the sessions and the `compact` toolset promise, one sentence each. A test says with `verifies` which of them it
 * shows; `requirements.test.ts` fails when one is not shown by any.
 */

import { defineRequirements } from '../harness/requirements.ts';

export const { texts, verifies } = defineRequirements({
  // ── the product ──────────────────────────────────────────────────────────────────────────────────────────────────
  'tools.four-by-default':
    'without a word about toolsets there are four tools, and none that changes the rights of the server',
  'tools.described': 'every tool has a title, an output schema and all four annotations',
  'tools.size': 'what a model reads of the tools list is at most 9,000 bytes',
  'tools.builtin-names': 'the description of claude_code lists the built-in tools of Claude Code',
  'tools.real-names': 'after the first start the list is the real one, and tools/list_changed is announced',
  'errors.as-results': 'a bad argument, an unknown session, an unknown tool is a tool result with "Error [CODE]: …"',
  'errors.unknown-parameter': 'an unknown parameter is INVALID_ARGUMENT that names it and the nearest known one',
  'errors.given-twice': 'a key given nested and flat with different values is INVALID_ARGUMENT',
  'errors.flat-form': 'a nested key given at top level means the same',

  // ── claude_code ──────────────────────────────────────────────────────────────────────────────────────────────────
  'start.returns-at-once': 'starting returns sessionId, status "running" and pollInterval while Claude works',
  'start.one-required-parameter': 'prompt is all that is needed, and it may begin with dashes',
  'start.blank-prompt': 'a blank prompt is refused',
  'start.wait': 'with waitMs the answer of the start carries what a check would say',
  'start.default-directory': 'without cwd the session works in the directory of the server',
  'start.allowed-tools': 'a tool in allowedTools passes without a request',
  'start.disallowed-wins': 'disallowedTools wins over allowedTools',
  'start.resume-token': 'a resumeToken is returned only when a secret is set, and is the HMAC-SHA256 of the session id',
  'start.no-such-directory': 'a directory that does not exist is an error of the call that names it',
  'start.no-such-executable': 'an executable that does not exist is an error of the call, with an empty sessionId',
  'start.exits-at-once': 'an executable that ends at once is an error of the call with what it said',
  'start.hangs': 'a start that is not reported within sessionInitTimeoutMs is TIMEOUT, and its process is ended',
  'start.structured-output': 'with outputFormat the result carries structuredOutput',

  // ── claude_code_reply ────────────────────────────────────────────────────────────────────────────────────────────
  'reply.same-process': 'a reply to a live session goes to the process it has',
  'reply.new-result': 'a reply starts a new call: the old answer is not taken for the new one',
  'reply.busy': 'a reply to a running or waiting session is SESSION_BUSY',
  'reply.busy-race': 'of two replies at once exactly one is taken',
  'reply.queue': 'with whenBusy "queue" the message is taken up by the running session',
  'reply.switch': 'model and permissionMode of a reply hold from this turn on',
  'reply.wait': 'with waitMs the reply answers as a check does',
  'reply.unknown-session': 'a session that is not known is SESSION_NOT_FOUND with a hint',
  'reply.after-crash': 'a reply to a session whose process was killed resumes it with its options and history',
  'fork.new-session': 'a fork is a new session with its own id and the history of the original',
  'fork.original-untouched': 'the original of a fork stays as it is, and takes replies of its own',
  'fork.while-running': 'a running session can be forked and runs on',
  'disk.off': 'without the switch a forgotten session is SESSION_NOT_FOUND with what to set',
  'disk.no-secret': 'with the switch but no secret disk resume is PERMISSION_DENIED with what to set',
  'disk.token': 'a wrong or missing token is PERMISSION_DENIED',
  'disk.resumes': 'with switch, secret and token a session of an earlier server goes on in its own directory',
  'disk.unknown': 'an id that Claude Code does not have is SESSION_NOT_FOUND',
  'disk.vanished-directory': 'a recorded directory that is gone is an error that names it',

  // ── claude_code_check ────────────────────────────────────────────────────────────────────────────────────────────
  'check.poll-at-once': 'poll answers at once with the events so far',
  'check.poll-interval': 'pollInterval is 3000 while running, 1000 while waiting, absent at rest',
  'check.event-ids': 'event ids rise by one, and a cursor reads on where the last answer ended',
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
  'wait.until-rest': 'wait answers when the session is at rest, without events',
  'wait.until-request': 'wait answers when a request is open',
  'wait.time-up': 'wait reports "running" when its time is up',
  'wait.progress': 'a wait sends progress with rising numbers and readable lines, at least every 5 s',
  'wait.client-cancels': 'cancelling a wait leaves the session alone',
  'wait.two-at-once': 'two waits on one session both get the answer',
  'wait.session-cancelled': 'a wait ends when the session is cancelled',
  'wait.cheap':
    'a 40-tool task costs a waiting caller at most 3 calls and 2,000 bytes; its minimal view is at most 1/8 of the full one',

  // ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────
  'request.permission': 'a tool that needs permission is an action with all a caller has to know; allow lets it run',
  'request.deny': 'deny keeps the tool from running and tells Claude the message',
  'request.deny-default': 'without denyMessage Claude is told "Permission denied by caller"',
  'request.deny-interrupt': 'deny with interrupt also stops the turn; the session takes replies',
  'request.updated-input': 'updatedInput is what runs',
  'request.always-allow': 'updatedPermissions with the suggestion stops the next question',
  'request.disallowed-input': 'disallowedTools refuses even what is approved',
  'request.once': 'a request is answered once: a second answer, or an unknown id, is PERMISSION_REQUEST_NOT_FOUND',
  'request.time-out': 'nobody answers in time: denied with words that say so, and a late answer is not found',
  'request.never-expires': 'permissionRequestTimeoutMs 0 never expires',
  'request.parallel': 'requests of parallel tool calls are open side by side and answered in any order',
  'request.sub-agents': 'requests of sub-agents are open side by side and carry agentID',
  'request.events': 'each request and each outcome is an event, the outcome with its source',
  'request.plan': 'a plan that Claude wrote down is a plan review with its text; allow leaves plan mode',
  'request.plan-said': 'a plan that Claude only said is a plan review with its text all the same',
  'request.plan-deny': 'a refused plan tells Claude why and stays in plan mode',
  'request.question-map': 'a question is answered by a map from question to label or text',
  'request.question-list': 'questions are answered by a list in their order, several labels as a list',
  'request.question-needs-answer': 'a question is not answered by a bare allow, a wrong question or too few answers',
  'request.question-not-approved': 'a question does not answer itself when its tool is in allowedTools',
  'request.needs-parameters': 'respond_permission without requestId or decision is INVALID_ARGUMENT',

  // ── claude_code_session, and the life of a session ───────────────────────────────────────────────────────────────
  'session.list': 'list and get show the sessions of the server with totals, and no secrets',
  'session.sensitive': 'includeSensitive adds directory and system prompt, but never env, servers or settings',
  'session.disk-list': 'scope "disk" lists what Claude Code has on this machine, newest first',
  'session.rewind': 'rewind says what it would put back, and with dryRun false does it',
  'session.interrupt': 'interrupt stops the turn and its command; the session takes replies',
  'session.interrupt-request': 'interrupt settles open requests',
  'session.interrupt-rest': 'interrupt of a session at rest changes nothing',
  'session.cancel': 'cancel ends the process and all it started, and says when, why and by whom',
  'session.cancel-final': 'a cancelled session takes no replies, and what comes late changes nothing',
  'session.cancel-request': 'cancel denies open requests; answering them later is PERMISSION_REQUEST_NOT_FOUND',
  'life.crash': 'a process that dies at work is "error" with how it ended, its requests settled',
  'life.park': 'a process at rest is closed after the time for parking, and a reply resumes it with its history',
  'life.park-background': 'a session with a background task is not parked, and shows backgroundTasks',
  'life.background-wakes': 'when a background command ends the session works again by itself and has a new result',
  'life.background-agent':
    'a session stays running through the first result while a sub-agent works; the last result counts, with sums',
  'life.ttl': 'a session at rest for its time is forgotten',
  'life.running-max':
    'a session that works too long is cancelled with cancelledSource "cleanup", and can still be looked at',
  'life.max-sessions-parks': 'a start beyond the limit parks the longest idle session',
  'life.max-sessions-busy': 'a start beyond the limit is TOO_MANY_SESSIONS when all work',
  'life.not-persistent': 'a session without a transcript is not parked',
  'life.held': 'a session that another Claude Code holds is SESSION_BUSY with its pid',

  // ── totals ───────────────────────────────────────────────────────────────────────────────────────────────────────
  'totals.hot-replies': 'cost and turns of each call and of the session are right over replies to a live process',
  'totals.parked': 'they are right over a resume after parking',
  'totals.killed': 'they are right over a resume after the process was killed',
  'totals.fork': 'the sums of a fork start with what it inherited, those of the original stay',
  'totals.disk': 'they are right over a resume from disk',
});
