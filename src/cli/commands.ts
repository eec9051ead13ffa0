import { COMMANDS, type CommandName } from '../config/command-line.ts';
import { optionLines, wrap } from '../config/help.ts';
import { AUDIT_KINDS } from '../schema/enums.ts';
import { HUB_ONLY_KEYS, type SettingKey } from '../config/settings-table.ts';
import { type Flag, type Flags, listed, requireAction } from './parse-flags.ts';

/** What the help of a command, or of one of its actions, says. Its flags are parsed by the same table. */
interface CommandHelp {
  /** After the name of the command. */
  readonly usage: readonly string[];
  readonly about?: string;
  /** Words after the command, each with a help of its own. */
  readonly actions?: Actions;
  readonly flags: Flags;
  /** Settings that matter to it; all of them can be given. */
  readonly settings?: readonly SettingKey[];
  readonly examples: readonly string[];
}

/** A word after a command. */
interface ActionHelp {
  readonly meaning: string;
  /** After the word; one line each. */
  readonly usage?: readonly string[];
  readonly about?: string;
  readonly flags: Flags;
  readonly settings?: readonly SettingKey[];
  /** After the name of the command; without it, the action alone. */
  readonly example?: string;
}

type Actions = Readonly<Record<string, ActionHelp>>;

const JSON_FLAG = { json: { meaning: 'print JSON' } } satisfies Flags;
const URL_FLAG = {
  url: { value: 'url', meaning: 'the hub of another machine; needs a token in CLAUDE_CODE_MCP_TOKEN' },
} satisfies Flags;
const YES = { short: 'y' } as const;
const ALL_SETTINGS = 'All settings: claude-code-mcp --help';

export const HUB_ACTIONS = {
  start: {
    meaning: 'start the hub in the background',
    usage: ['[settings]'],
    about: `Does nothing if it runs already. ${ALL_SETTINGS}`,
    flags: {},
    settings: HUB_ONLY_KEYS,
    example: 'start --listen 127.0.0.1:7433',
  },
  stop: {
    meaning: 'stop the hub and end what its sessions do; they can be continued later',
    usage: ['[--keep]'],
    flags: { keep: { meaning: 'their work goes on, and the next hub takes it over' } },
  },
  restart: {
    meaning: 'restart the hub, with the flags it was started with unless others are given',
    usage: ['[settings]'],
    about: `What its sessions do goes on. ${ALL_SETTINGS}`,
    flags: {},
    settings: HUB_ONLY_KEYS,
  },
  status: { meaning: 'whether the hub runs, and where', usage: ['[--json]'], flags: JSON_FLAG },
  logs: {
    meaning: 'the log of the hub',
    usage: ['[--follow]'],
    flags: { follow: { short: 'f', meaning: 'show lines as they come' } },
    example: 'logs --follow',
  },
  open: {
    meaning: 'open the dashboard in the browser, signed in',
    usage: ['[--print | --qr]'],
    about: 'The link works once, within two minutes.',
    flags: {
      print: { meaning: 'print the sign-in link' },
      qr: { meaning: 'show the sign-in link as a QR code, for a phone' },
    },
  },
  install: {
    meaning: 'run the hub as a service of this user',
    usage: ['[--print] [settings]'],
    about: `Settings given here become part of the service. ${ALL_SETTINGS}`,
    flags: { print: { meaning: 'print the service file' } },
    settings: HUB_ONLY_KEYS,
  },
  uninstall: { meaning: 'remove the service', flags: {} },
} satisfies Actions;

export const TOKEN_ACTIONS = {
  create: {
    meaning: 'create a token',
    usage: ['<name> --role <role> [--attended] [--expires <duration>] [--json]'],
    about: 'The token is shown once.',
    flags: {
      role: { value: 'role', meaning: 'viewer, caller, approver or admin' },
      attended: { meaning: 'a person uses it, so its form answers count as a person’s' },
      expires: { value: 'duration', meaning: '90m, 12h, 30d, 4w or 1y, or never; 90d if omitted' },
      ...JSON_FLAG,
    },
    example: 'create ci --role caller --expires 30d',
  },
  list: { meaning: 'list the tokens', usage: ['[--json]'], flags: JSON_FLAG },
  revoke: {
    meaning: 'revoke a token; it is refused from then on',
    usage: ['<id or name> [--json]'],
    flags: JSON_FLAG,
    example: 'revoke ci',
  },
} satisfies Actions;

export const WORKTREES_ACTIONS = {
  list: { meaning: 'list the worktrees, with what is not merged', usage: ['[--json]'], flags: JSON_FLAG },
  prune: {
    meaning: 'remove the worktrees that are done',
    usage: ['[--yes]'],
    about:
      'Done means that the work is merged or applied and that the worktree has been idle for an hour. They are shown first, and nothing is removed without a yes.',
    flags: { yes: { ...YES, meaning: 'remove without asking' } },
  },
} satisfies Actions;

export const AUDIT_FLAGS = {
  session: { value: 'id', meaning: 'only this session' },
  person: { value: 'name', meaning: 'only what this person or program did' },
  tool: { value: 'name', meaning: 'only this tool' },
  decision: { value: 'allow|deny', meaning: 'only these decisions' },
  kind: { value: 'kind', meaning: `only entries of this kind: ${AUDIT_KINDS.join(', ')}` },
  since: { value: 'time', meaning: 'a date, a time, or an age such as 30m, 12h or 7d' },
  until: { value: 'time', meaning: 'like --since' },
  search: { value: 'words', meaning: 'only entries that mention them' },
  last: { value: 'n', meaning: 'how many entries; 50 if omitted' },
  json: { meaning: 'print JSON, one line per entry' },
} satisfies Flags;

const RULE_SCOPE_FLAGS = {
  directory: { value: 'dir', meaning: 'for this directory; without it, for the repository of the current one' },
  everywhere: { meaning: 'for every directory' },
} satisfies Flags;

const RULE_USAGE = "allow|deny|ask '<tool>(<match>)'";
const RULE_SCOPE_USAGE = '[--directory <dir> | --everywhere]';
const PACKS = 'Packs: reading, git-local.';

export const RULES_ACTIONS = {
  list: { meaning: 'list the rules', usage: ['[--json]'], flags: { ...JSON_FLAG, ...URL_FLAG } },
  add: {
    meaning: 'make a rule, after its replay was shown',
    usage: [`${RULE_USAGE} ${RULE_SCOPE_USAGE} [--principal <id>] [--note <text>] [--expires <duration>]`],
    flags: {
      ...RULE_SCOPE_FLAGS,
      ...URL_FLAG,
      principal: { value: 'id', meaning: 'only for sessions of this principal' },
      note: { value: 'text', meaning: 'why it was made' },
      expires: { value: 'duration', meaning: 'such as 30d; never if omitted' },
    },
    example: "add allow 'Bash(npm test)'",
  },
  remove: {
    meaning: 'remove a rule',
    usage: ['<id>'],
    about: 'The id may be shortened.',
    flags: URL_FLAG,
    example: 'remove r_7d0c44',
  },
  replay: {
    meaning: 'what a rule would have answered of the requests that people decided',
    usage: [`${RULE_USAGE} ${RULE_SCOPE_USAGE} [--json]`, `<file or pack> ${RULE_SCOPE_USAGE} [--json]`],
    about: PACKS,
    flags: { ...RULE_SCOPE_FLAGS, ...JSON_FLAG, ...URL_FLAG },
    example: 'replay reading',
  },
  import: {
    meaning: 'take the rules of a file or a pack',
    usage: [`<file or pack> ${RULE_SCOPE_USAGE}`],
    about: PACKS,
    flags: { ...RULE_SCOPE_FLAGS, ...URL_FLAG },
    example: 'import git-local',
  },
  export: { meaning: 'print the rules as a file', flags: URL_FLAG, example: 'export > rules.json' },
} satisfies Actions;

export const DOCTOR_FLAGS = {
  offline: { meaning: 'make no request to the model; the login is then not verified' },
  ...JSON_FLAG,
} satisfies Flags;

export const DEMO_FLAGS = {
  live: { meaning: 'with your own login, which costs a little; asks before Claude acts' },
  yes: { ...YES, meaning: 'with --live: allow everything' },
  dashboard: { meaning: 'run a hub with sessions and print the link to its dashboard' },
} satisfies Flags;

const UNINSTALL_FLAGS = {
  name: { value: 'name', meaning: 'of the entry; claude-code if omitted' },
  print: { meaning: 'show what would change' },
  yes: { ...YES, meaning: 'change the file without asking' },
} satisfies Flags;

export const INSTALL_FLAGS = {
  install: {
    ...UNINSTALL_FLAGS,
    http: { meaning: 'an entry for the hub over HTTP, with a token of its own' },
    url: { value: 'url', meaning: 'with --http: the address of the hub' },
    attended: { meaning: 'with --http: a person uses the client' },
    expires: { value: 'duration', meaning: 'with --http: how long the token is valid; 90d if omitted' },
  },
  uninstall: UNINSTALL_FLAGS,
} satisfies Record<string, Flags>;

const CLIENT_FLAGS = { ...JSON_FLAG, ...URL_FLAG } satisfies Flags;
const FOLLOW = {
  follow: { meaning: 'show what it does until it is at rest; the exit code is 1 if it failed' },
} satisfies Flags;

/** The permission modes that a person may start a session in. */
export const START_MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto'] as const;

/** The flags of the commands that use a running hub. */
export const CLIENT_COMMAND_FLAGS = {
  inbox: { ...CLIENT_FLAGS, watch: { meaning: 'in a terminal: stay, and show requests as they come' } },
  sessions: { ...CLIENT_FLAGS, all: { meaning: 'not only the most recent ones' } },
  show: CLIENT_FLAGS,
  follow: {
    ...CLIENT_FLAGS,
    'until-rest': { meaning: 'end when the session is at rest; the exit code is 1 if it failed' },
  },
  start: {
    ...CLIENT_FLAGS,
    cwd: { value: 'directory', meaning: 'where it works; this directory if omitted' },
    model: { value: 'model', meaning: 'the model' },
    'permission-mode': { value: 'mode', meaning: listed(START_MODES, 'or') },
    worktree: { meaning: 'in a git worktree of its own' },
    ...FOLLOW,
  },
  send: { ...CLIENT_FLAGS, ...FOLLOW },
  allow: {
    ...CLIENT_FLAGS,
    digest: { value: 'digest', meaning: 'what is allowed, from "inbox --json"; with a token, nobody is asked' },
    always: { meaning: 'also what Claude Code suggests allowing, for this session' },
    confirm: { value: 'digest', meaning: 'with --digest: for a request that is old or whose target has changed' },
  },
  deny: { ...CLIENT_FLAGS, message: { value: 'words', short: 'm', meaning: 'what Claude should do instead' } },
} satisfies Record<string, Flags>;

const WHO_MAY = 'Needs an interactive terminal outside any session, or a token in CLAUDE_CODE_MCP_TOKEN.';
const SHORT_IDS = 'The id may be shortened.';

const HELP: Readonly<Record<CommandName, CommandHelp>> = {
  serve: {
    usage: ['[settings]'],
    about: `Serves one MCP client over stdin and stdout, through the hub of this user if one runs. MCP clients start this command themselves; "install" tells them how. ${ALL_SETTINGS}`,
    flags: {},
    settings: ['toolset', 'approvals', 'allowedDirs', 'sandbox', 'hub'],
    examples: ['claude-code-mcp --toolset explicit --approvals human'],
  },
  hub: {
    usage: ['[settings]'],
    about: `Without an action it runs in the foreground. ${ALL_SETTINGS}`,
    actions: HUB_ACTIONS,
    flags: {},
    settings: HUB_ONLY_KEYS,
    examples: ['claude-code-mcp hub start --listen 127.0.0.1:7433', 'claude-code-mcp hub logs --follow'],
  },
  inbox: {
    usage: ['[--watch | --json] [--url <url>]'],
    about:
      'What waits for a person, oldest first. In a terminal each request is shown whole and answered by one key; elsewhere they are listed.',
    flags: CLIENT_COMMAND_FLAGS.inbox,
    examples: ['claude-code-mcp inbox', 'claude-code-mcp inbox --json'],
  },
  sessions: {
    usage: ['[--all] [--json] [--url <url>]'],
    about: 'Most recently active first.',
    flags: CLIENT_COMMAND_FLAGS.sessions,
    examples: ['claude-code-mcp sessions'],
  },
  show: {
    usage: ['<session id> [--json] [--url <url>]'],
    about: 'Its state, what it waits for and its last answer. The id may be shortened.',
    flags: CLIENT_COMMAND_FLAGS.show,
    examples: ['claude-code-mcp show 3f2a91c0'],
  },
  follow: {
    usage: ['<session id> [--until-rest] [--json] [--url <url>]'],
    about: `Shows the last turn and what follows, until Ctrl-C. In a terminal, what it asks can be answered there. ${SHORT_IDS}`,
    flags: CLIENT_COMMAND_FLAGS.follow,
    examples: ['claude-code-mcp follow 3f2a91c0'],
  },
  start: {
    usage: ['[flags] <prompt>'],
    about: `Starts a session of the hub in this directory, with this environment. The prompt "-" is read from stdin. ${WHO_MAY}`,
    flags: CLIENT_COMMAND_FLAGS.start,
    examples: ['claude-code-mcp start --follow "Fix the failing test"'],
  },
  send: {
    usage: ['<session id> [flags] <text>'],
    about: `Sends the next message; a working session takes it up when it can. ${SHORT_IDS} ${WHO_MAY}`,
    flags: CLIENT_COMMAND_FLAGS.send,
    examples: ['claude-code-mcp send 3f2a91c0 "Now commit it"'],
  },
  allow: {
    usage: ['<request id> [--always]', '<request id> --digest <digest>'],
    about: `Shows the whole input and asks. ${SHORT_IDS} ${WHO_MAY} Without a terminal, --digest is required too.`,
    flags: CLIENT_COMMAND_FLAGS.allow,
    examples: ['claude-code-mcp allow 7d0c44e1'],
  },
  deny: {
    usage: ['<request id> [-m <words>]'],
    about: `${SHORT_IDS} ${WHO_MAY}`,
    flags: CLIENT_COMMAND_FLAGS.deny,
    examples: ['claude-code-mcp deny 7d0c44e1 -m "Use the staging database"'],
  },
  doctor: {
    usage: ['[--offline] [--json] [settings]'],
    about: `Exits with 0 if there is nothing to fix. ${ALL_SETTINGS}`,
    flags: DOCTOR_FLAGS,
    examples: ['claude-code-mcp doctor'],
  },
  demo: {
    usage: ['[--live [--yes]]', '--dashboard'],
    about: 'Claude Code fixes a bug in a small repository, through a real client and server.',
    flags: DEMO_FLAGS,
    examples: ['claude-code-mcp demo'],
  },
  audit: {
    usage: ['[--session <id>] [--last <n>] [--json]'],
    flags: AUDIT_FLAGS,
    settings: ['auditLog', 'store', 'stateDir'],
    examples: ['claude-code-mcp audit --last 20'],
  },
  token: {
    usage: [],
    about: 'For programs and people that use the hub over HTTP. A token is shown once, when it is created.',
    actions: TOKEN_ACTIONS,
    flags: {},
    settings: ['store', 'stateDir'],
    examples: ['claude-code-mcp token create ci --role caller --expires 30d'],
  },
  rules: {
    usage: [],
    about: `Standing rules of the hub, which answer what people would be asked again and again. Only a person can change them: at an interactive terminal outside any session, or with a token in CLAUDE_CODE_MCP_TOKEN. ${PACKS}`,
    actions: RULES_ACTIONS,
    flags: {},
    settings: ['store', 'stateDir'],
    examples: ["claude-code-mcp rules add allow 'Bash(npm test)'", 'claude-code-mcp rules replay reading'],
  },
  worktrees: {
    usage: ['[--json]'],
    about: 'Without an action it lists them. prune removes what is merged or applied and has been idle for an hour.',
    actions: WORKTREES_ACTIONS,
    flags: {},
    settings: ['worktreesDir'],
    examples: ['claude-code-mcp worktrees prune'],
  },
  install: {
    usage: ['<client> [flags] [settings]', '<client> --http [--url <url>] [flags]'],
    about: `Shows the change and asks. Settings given here become part of the entry. ${ALL_SETTINGS}`,
    flags: INSTALL_FLAGS.install,
    examples: ['claude-code-mcp install codex --approvals human'],
  },
  uninstall: {
    usage: ['<client> [flags]'],
    flags: INSTALL_FLAGS.uninstall,
    examples: ['claude-code-mcp uninstall codex'],
  },
};

/** What `claude-code-mcp <command> --help` prints, or `<command> <action> --help`. */
export async function commandHelp(command: CommandName, action?: string): Promise<string> {
  const { actions, ...help } = HELP[command];
  if (actions && action !== undefined && !action.startsWith('-'))
    return actionHelp(command, requireAction(command, action, Object.keys(actions)), actions);
  const usages = Object.entries(actions ?? {}).flatMap(([word, one]) => usagesOf(word, one));
  const flags = actions ? flagsOfAll(actions) : help.flags;
  return page(`claude-code-mcp ${command}`, COMMANDS[command], { ...help, usage: [...help.usage, ...usages], flags }, [
    ...section('Clients', command === 'install' || command === 'uninstall' ? await clientLines() : []),
    ...section(
      'Actions',
      Object.entries(actions ?? {}).map(([word, { meaning }]) => `  ${word.padEnd(11)}${meaning}`),
    ),
    ...(actions ? ['', `More on one of them: claude-code-mcp help ${command} <action>`] : []),
  ]);
}

function actionHelp(command: CommandName, word: string, actions: Actions): string {
  const { [word]: one } = actions;
  if (!one) throw new TypeError(`${command} has no action ${word}`);
  const { meaning, about, flags, settings, example = word } = one;
  const examples = [`claude-code-mcp ${command} ${example}`];
  const help = { usage: usagesOf(word, one), flags, examples, ...(about !== undefined && { about }) };
  return page(`claude-code-mcp ${command}`, meaning, { ...help, ...(settings && { settings }) }, [], word);
}

function usagesOf(word: string, { usage = [''] }: ActionHelp): string[] {
  return usage.map((line) => `${word} ${line}`.trimEnd());
}

/** The flags of all actions; one that not all of them have says which. */
function flagsOfAll(actions: Actions): Flags {
  const names = new Set(Object.values(actions).flatMap(({ flags }) => Object.keys(flags)));
  const merged = [...names].map((name): [string, Flag] => {
    const having = Object.entries(actions).flatMap(([word, { flags }]) => {
      const flag = flags[name];
      return flag ? [{ word, flag }] : [];
    });
    const meanings = [...new Set(having.map(({ flag }) => flag.meaning))].map((meaning) => {
      const words = having.filter(({ flag }) => flag.meaning === meaning).map(({ word }) => word);
      return words.length === Object.keys(actions).length ? meaning : `with ${listed(words, 'and')}: ${meaning}`;
    });
    const { flag = { meaning: '' } } = having[0] ?? {};
    return [name, { ...flag, meaning: meanings.join('; ') }];
  });
  return Object.fromEntries(merged);
}

function page(
  name: string,
  does: string,
  { usage, about, flags, settings = [], examples }: Omit<CommandHelp, 'actions'>,
  between: readonly string[],
  word?: string,
): string {
  return [
    `${word === undefined ? name : `${name} ${word}`}: ${does}.`,
    '',
    ...usage.map((line, index) => `${index === 0 ? 'Usage:' : '      '} ${name} ${line}`.trimEnd()),
    ...(about === undefined ? [] : ['', ...wrap(about, '')]),
    ...between,
    ...section('Flags', Object.entries(flags).flatMap(flagLines)),
    ...section('Settings', settings.flatMap(optionLines)),
    ...section(
      examples.length === 1 ? 'Example' : 'Examples',
      examples.map((line) => `  ${line}`),
    ),
    '',
  ].join('\n');
}

async function clientLines(): Promise<string[]> {
  const { CLIENTS } = await import('./install/clients.ts');
  return Object.entries(CLIENTS).map(([name, { title }]) => `  ${name.padEnd(16)}${title}`);
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines];
}

function flagLines([name, { value, short, meaning }]: [string, Flag]): string[] {
  const names = [...(short === undefined ? [] : [`-${short}`]), `--${name}`].join(', ');
  return [`  ${names}${value === undefined ? '' : ` <${value}>`}`, ...wrap(meaning, '      ')];
}
