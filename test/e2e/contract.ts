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
    },
  },
  {
    title: 'Work: what a session did, and where it did it',
    requirements: ['work.'],
    tests: {
      'apply never overwrites what is not the session’s': 'test/workspace/apply: never overwrites an ignored file',
      'discard keeps unmerged work':
        'test/workspace/apply: of a session with work is refused and names the work; with force it keeps everything on the branch',
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
    },
  },
  {
    title: 'The dashboard',
    tests: {
      'the page is accessible, fits and contacts no other host':
        'test/browser/pages: is accessible, fits the screen and contacts no other host, on desktop and phone, in light and dark mode',
      'a page that was away catches up':
        'test/browser/pages: the page shows that the connection is lost, reconnects, and catches up',
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
