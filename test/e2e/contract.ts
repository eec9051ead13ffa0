/**
 * The sections of the contract, each with what is promised there and the tests that verify it: requirements of a
 * session by the start of their ids, all else by `file: title of the test`. A section without either fails
 * `requirements.test.ts`.
 */

export interface Section {
  readonly title: string;
  /** Requirements in `requirements.ts` whose ids start with one of these belong to this section. */
  readonly requirements?: readonly string[];
  /** What else is promised, by the test that verifies it. */
  readonly tests?: Readonly<Record<string, string>>;
}

export const CONTRACT: readonly Section[] = [
  { title: 'The product', requirements: ['tools.', 'errors.', 'caller.'] },
  { title: 'Toolset compact', requirements: ['start.', 'reply.', 'fork.', 'disk.', 'check.', 'wait.', 'look.'] },
  { title: 'Toolset explicit', requirements: ['create.', 'message.', 'status.', 'list.'] },
  { title: 'Life of a session', requirements: ['life.', 'session.', 'totals.'] },
  { title: 'Requests: permissions, plans, questions', requirements: ['request.'] },
  {
    title: 'The operator’s rules',
    tests: {
      'any settings are read, or refused with one line that names the mistake':
        'test/config/any-settings: gives settings or a one-line SettingsError for any input',
      'a session works only in the directories that the operator allows':
        'test/e2e/operator-directories: outside is refused, however the path is written',
      'with approvals by people only, a tool answer decides nothing':
        'test/e2e/forms-human: lets the caller wait for the person, but not allow or deny',
      'every setting has its name, its bare name and its default':
        'test/config/load-settings: has the defaults from the specification',
      'inside a session ALLOWED_DIRS binds file tools too':
        'test/e2e/operator-reach: file tools read and write nothing outside, even if allowed in advance',
      'SANDBOX binds commands, whatever a caller asks for':
        'test/e2e/operator-sandbox: gets no wider access from a caller’s options',
      'DENY_OPTIONS refuses options however they are given':
        'test/e2e/operator-permissions: refuses options, nested or flat, in a start, a reply and a resume from disk',
      'a caller gets no sensitive details where the operator forbids it':
        'test/e2e/operator-limits: with ALLOW_SENSITIVE_SESSION_DETAILS off, disk lists show neither directories nor prompts',
      'EXECUTABLE, MAX_TURNS and MAX_BUDGET_USD hold':
        'test/e2e/operator-limits: EXECUTABLE is the program that runs; MAX_TURNS and MAX_BUDGET_USD are both maximum and default',
      'MAX_DEPTH limits sessions that start sessions': 'test/e2e/operator-nesting: of 0 refuses every session',
      'where a limit is set, a prompt is text':
        'test/e2e/operator-prompts: slash commands, !, # and @ in a prompt are text',
      'every operation and decision is audited, without texts':
        'test/e2e/audit: is logged with every call, start, request, decision and its source, and end, but none of the texts',
    },
  },
  {
    title: 'The command',
    tests: {
      'doctor reports what has to be fixed': 'test/cli/doctor: reports a working directory that does not exist',
      'install adds the server to a client and takes nothing away':
        'test/cli/install: install adds the server and keeps every line; uninstall restores the file exactly',
      'hub commands start, report and stop the hub':
        'test/hub/commands: starts, reports, opens, restarts and stops the hub',
      'every command has its own help': 'test/cli/help: %s has its own help, with usage, flags and an example',
      'a closed pipe ends a command quietly': 'test/cli/help: a pipe that is closed early ends a command quietly',
      'an unknown flag or command names the nearest':
        'test/e2e/operator-start: an unknown flag or command does so too, with a suggestion',
      'a login that was not verified is called that':
        'test/cli/doctor: says of a login that it is refused, or that it was not verified',
      'uninstall removes what install added, and the token':
        'test/cli/install-http: uninstall removes the entry and revokes the token',
      'a person answers at a terminal, by keys':
        'test/cli/client/answers: a person at a terminal answers one request after the other, each by one key',
      'allow prints the whole input and asks':
        'test/cli/client/answers: allow asks first, and nothing is allowed that was not on the screen',
      'unattended, an answer takes a token and the digest':
        'test/cli/client/answers: without a terminal it takes a token, and the digest of what is allowed',
      'start, send, show and follow work on a session':
        'test/cli/client/sessions: a session is started, answered, watched and continued at a terminal',
      'the demo needs no key and no network': 'test/cli/demo: fixes the bug and reports it as plain text',
    },
  },
  {
    title: 'Work: what a session did, and where it did it',
    requirements: ['work.'],
    tests: {
      'apply never overwrites what is not the session’s': 'test/workspace/apply: never overwrites an ignored file',
      'discard keeps unmerged work':
        'test/workspace/apply: of a session with work is refused and names the work; with force it keeps everything on the branch',
      'git that the server runs trusts nothing in the repository':
        'test/workspace/hostile: runs nothing when its directory is inspected',
      'an apply is all or nothing, also over a crash':
        'test/workspace/apply: continues after git died while writing files',
      'what a person approves is what happens':
        'test/workspace/approved: applies the commit that was shown, not what was written since',
      'an approved action is carried out once, whoever waits':
        'test/hub/approved-actions: an apply that was allowed when the hub was killed is carried out by the next one, once',
      'attempts start together, are compared and chosen from':
        'test/hub/api-attempts: attempts are chosen from and deleted through the API',
    },
  },
  {
    title: 'The hub',
    tests: {
      'sessions outlive their clients':
        'test/hub/attach: that is killed leaves its session running, and the next one gets the result',
      'roles and ownership hold on every route':
        'test/hub/access: every route enforces roles and ownership, by token and in a browser',
      'nothing but status, static files and sign-in answers without a credential':
        'test/hub/http-auth: without a credential only status, static files and sign-in answer, and unknown paths reveal nothing',
      'MCP over HTTP has forms and progress and survives a restart':
        'test/hub/mcp-over-http: gets forms and progress, survives a restart, and sees only the sessions of its own token',
      'notifications are short and signed':
        'test/hub/notify: an open request and the end of a turn are sent as short, signed notes',
      'a client with another configuration serves by itself':
        'test/hub/attach: with another configuration or the wrong secret is served without the hub',
      'a connection brings its directory and environment and only narrows':
        'test/hub/connections: a connection provides its directory and environment, and narrows the rules for its own calls on any session',
      'a client inside a session is a principal of its own':
        'test/hub/connections: an agent in a hub session sees and answers only sessions it started',
      'a session keeps the rules it was started under':
        'test/hub/rules-after-restart: a session keeps the rules it started with if the hub allows more later',
      'a shell below a session is no admin':
        'test/hub/commands: refuses commands inside a session that would give an agent more rights',
      'nobody but the user works where private files are':
        'test/hub/private-places: cannot work in a private place, or above one, however it is named',
      'hosts are checked, which defeats DNS rebinding':
        'test/hub/http-gate: only the hub’s own host names are answered, which defeats DNS rebinding',
      'an OAuth scope is a role': 'test/hub/http-oauth: an access token has the role of its highest scope',
      'tokens are shown once and never stored':
        'test/cli/token-command: a token is printed once, and is neither in the store nor in the audit record',
      'a write with an idempotency key is done once':
        'test/hub/idempotency: a repeated call gets the stored answer, and nothing is done twice',
      'a request is answered once, and who came late gets the outcome':
        'test/hub/api-routes: the first answer counts; the second gets the outcome and its author',
      'the event stream replays what a reader missed': 'test/hub/event-stream: a returning reader gets what it missed',
      'the API is what its document says':
        'test/hub/openapi: a client driven only by the document can call every operation',
      'one caller cannot slow the others':
        'test/hub/replaying-readers: while sixty readers replay a caller’s whole history, others are answered and memory stays bounded',
      'notes are kept in order and sent after a restart':
        'test/hub/notify: undelivered notes are sent after a restart, in order, and nothing is sent twice',
      'resources announce their changes to those who may see them':
        'test/hub/http-resources: clients of both eras are notified of changes to their own sessions',
      'prompts name the tools that the client has': 'test/mcp/extras: prompts name only tools of the %s toolset',
    },
  },
  {
    title: 'The dashboard',
    tests: {
      'the page is accessible, fits and contacts no other host':
        'test/browser/pages: is accessible, fits the screen and contacts no other host, on desktop and phone, in light and dark mode',
      'a page that was away catches up':
        'test/browser/pages: the page shows that the connection is lost, reconnects, and catches up',
      'a link signs in once, within two minutes':
        'test/browser/journeys/sign-in: a link signs in once, and neither again nor from a page of another origin',
      'each role sees only its controls':
        'test/browser/journeys/sign-in: each role sees its own pages and controls, and a revoked sign-in ends at once',
      'nothing is allowed that was not shown':
        'test/browser/pages/unseen: a long input cannot be allowed by button, key or editor before it is unfolded',
      'invisible characters are marked':
        'test/browser/pages/unseen: runs of blank lines and blanks are counted, and every invisible character is marked',
      'content is shown, never executed': 'test/browser/pages/content: is shown as text, never run or fetched',
      'an answer counts once, and every page shows whose':
        'test/browser/journeys/requests: when two people answer the same request in three tabs, it is decided once',
      'a session is driven from its page':
        'test/browser/journeys/sessions: a session is started, interrupted, sent a message, forked and cancelled from its page',
      'work is reviewed, applied and discarded':
        'test/browser/journeys/sessions: work in a worktree is reviewed and applied',
      'a page that was offline catches up without a gap':
        'test/browser/journeys/connection: it catches up without a reload and without a gap',
      'push says nothing of what is asked':
        'test/hub/push: a request is announced to each browser, encrypted and signed, without a word of what is asked',
      'an unanswered request is announced again, at most three times':
        'test/hub/push: an unanswered request is announced again, at most three times',
      'a subscription ends with its sign-in':
        'test/hub/push: a subscription ends when the browser has gone or its credential was revoked',
      'an old or changed request needs a second look':
        'test/hub/stale: an old request is allowed only with the digest of what makes it old',
    },
  },
  {
    title: 'What the hub remembers',
    tests: {
      'what was reported is stored, whenever the hub is killed':
        'test/hub/killed-hub: a hub killed at any of its writes remembers everything it has reported',
      'nothing is shown before it is stored':
        'test/hub/written-before-told: a form is known to the hub that starts after the one that showed it was killed',
      'a request outlives the process that asked':
        'test/hub/requests-outlive: a request can be answered after the hub was killed with its keeper, and another after its process was parked',
      'secrets are not stored':
        'test/hub/journal: secrets are not stored, and a session that needs them again names them',
      'Claude Code gets a decision once it is stored':
        'test/hub/gate: Claude Code gets the decision of %s once it is stored',
      'stopping never waits for a store': 'test/hub/gate: stopping a turn does not wait for the store',
      'an open request is kept over a restart, and its session is busy':
        'test/hub/restart: stays open after a restart, without a process, and keeps the session busy',
      'what was allowed is granted once':
        'test/hub/restart: allowed after a restart: the new process is told, and the same call runs once without asking',
      'a session at work when the hub was killed says why it rests':
        'test/hub/restart: a session that was running when the hub was killed comes to rest with the reason',
      'a killed hub stops nothing':
        'test/hub/kept-sessions: a killed hub stops nothing: work, a request and a session at rest go on under the next one',
      'a restart of the hub stops nothing either':
        'test/hub/graceful-restart: sessions go on, the waits of attached clients too',
      'a process does not outlive its rules or the time that its keeper allows':
        'test/hub/kept-sessions: under narrower rules a process is ended, and its request stays',
      'a dead keeper takes its processes along':
        'test/hub/kept-sessions: a keeper that is killed takes Claude Code along without asking the model again',
      'the keeper speaks to the hub alone':
        'test/hub/kept-sessions: the keeper speaks to nobody but the hub, whoever knows its secret',
      'both databases keep one contract':
        'test/store/history: Postgres gives the same answers as SQLite for every history',
      'a store of a newer version is refused, not damaged':
        'test/store/sqlite: a store of a newer version is refused with a clear message and left unchanged',
      'retention spares open requests and work':
        'test/store/contract: forgets old sessions at rest with everything that belongs to them, but never open requests or work',
    },
  },
  {
    title: 'More than one machine',
    tests: {
      'sessions of a lost hub continue elsewhere':
        'test/fleet/faults: a hub is killed: other hubs take over its sessions and continue them with their full history',
      'a command is carried out once':
        'test/hub/fleet: a command taken by a call whose reply was lost is still carried out, once',
      'only one hub runs a session':
        'test/hub/take-over: only one of several competing hubs gets a session, and one process starts',
      'any hub answers for every session':
        'test/hub/fleet: a session on one hub can be read, waited for and driven through another',
      'a command whose outcome nobody knows is not run again':
        'test/hub/fleet: a command that may have been queued is never reported as not done',
      'a session that cannot move stays with its machine, which is named':
        'test/hub/fleet: an unmovable session of a lost hub can still be read, and calls to it name the machine',
      'what can move starts where there is room':
        'test/hub/fleet: a movable session starts on the hub with the most free slots',
      'a hub that hangs loses its sessions for good':
        'test/hub/stopped-hub: a hub that hangs loses its movable session, keeps the other, and no longer writes to the lost one',
      'while Postgres is away nothing is told that was not stored':
        'test/fleet/faults: Postgres is restarted: calls fail meanwhile, and nothing reported is lost',
      'a session whose transcript is not mirrored does not move':
        'test/fleet/moved-session: a failed transcript mirror is reported, keeps its session from moving, and is repaired',
    },
  },
  {
    title: 'Standing rules',
    tests: {
      'only a person makes or changes a rule, within their role':
        'test/hub/standing-rules: only people make rules, each within their role',
      'no session makes one, with whatever terminal':
        'test/cli/client/answers: a session cannot answer or make rules, not even with a terminal of its own, and has no token',
      'a rule is for the repository, its worktrees included':
        'test/e2e/standing-rules: a rule for a repository holds in its worktrees, and does not lead from there into the checkout',
      'a rule for a principal or a directory answers for nobody else':
        'test/hub/standing-rules: a rule for one principal, or for a directory that only begins alike, answers nobody else',
      'a rule stops when its author loses the role': 'test/hub/rule-book: a rule stops when its author loses the role',
      'a rule is made where it hurts, with its replay, and leaves open requests to people':
        'test/hub/standing-rules: a rule made beside Allow answers from then on, counted and named',
      'deny and ask hold where Claude Code would not ask':
        'test/e2e/standing-rules: what a rule denies holds where Claude Code would not ask',
      'what a rule decided is told and audited with its id and author, and what needs a person is asked':
        'test/e2e/standing-rules: a rule answers what it matches, and nothing that Claude Code wants a person to see',
      'plans and questions are never answered by a rule':
        'test/e2e/standing-rules: plans and questions are put to a person, whatever rules there are',
      'sub-agents are included': 'test/e2e/standing-rules: a rule answers for sub-agents too',
      'matching refuses to guess':
        'test/engine/rules-and-shells: whatever is made of such commands, a rule matches only what a shell takes word by word',
      'a prefix runs nothing and writes nothing':
        'test/engine/rules-and-shells: whatever the table lists, the real programs change no file with it',
      'the command lists, makes, replays, imports and exports rules':
        'test/cli/rules: a rule is made, listed, exported, imported and removed',
      'the embedded server takes a private file':
        'test/e2e/standing-rules: the server does not start with a file that is %s',
      'rules are in force on every hub within a second':
        'test/hub/rule-book: a rule that is changed once is in force for everyone on %s within a second',
      'while the store is away no rule allows anything':
        'test/hub/rule-book: while the store is away no rule allows anything',
    },
  },
];
