import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { openAudit } from '../../audit/audit-log.ts';
import { TOKEN_VARIABLE } from '../../config/child-environment.ts';
import { readHubRecord } from '../../config/hub-record.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { scopeOf } from '../../engine/rules/standing/place.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import { parseDuration } from '../../hub/auth/tokens.ts';
import {
  inactivity,
  notesOn,
  PERSON,
  RuleManager,
  withMatch,
  type NewRule,
  PACKS,
} from '../../hub/rules/manage-rules.ts';
import { REPLAY_DAYS, replayRules } from '../../hub/rules/replay.ts';
import type { ApiRule, MadeRules, ReplayAnswer, RuleAnswer, RulesAnswer } from '../../schema/api-admin.ts';
import { RULE_DECISIONS } from '../../schema/enums.ts';
import { ruleFields, ruleFile, type RuleFields, type StandingRule } from '../../schema/standing-rules.ts';
import type { Store } from '../../store/contract.ts';
import { openStore } from '../../store/open-store.ts';
import { counted, localTime } from '../../text/columns.ts';
import { printable, printableLines } from '../../text/invisible.ts';
import { theOneWith } from '../client/client.ts';
import { ApiFailure, type HubApi, openHub } from '../client/hub-api.ts';
import { RULES_ACTIONS } from '../commands.ts';
import { storeInUse } from '../hub/running-hub.ts';
import { existingDirectory, parseFlags, refuseWords, requireAction, requireWord } from '../parse-flags.ts';
import type { HubClientContext } from '../serve/find-hub.ts';
import { askYesNo, openTerminal, type Terminal } from '../terminal/terminal.ts';

const DAY_MS = 86_400_000;
/** So that an empty or common beginning removes nothing. */
const SHORTEST_ID = 'r_'.length + 4;
const SHOWN_REQUESTS = 10;

export interface RulesCommandContext {
  /** Opened only when needed; works alongside a running hub, which takes up what was changed. */
  readonly openStore: () => Promise<Store>;
  /** A hub that is used with a token, whose role it enforces; undefined if there is none. `url`: what `--url` says. */
  readonly openHub: (url: string | undefined) => HubApi | undefined;
  /** Why this process may not change rules. */
  readonly refusal: string | undefined;
  readonly terminal: Terminal;
  readonly writeError: (text: string) => void;
  readonly cwd: string;
  readonly now: () => number;
  readonly record: (what: string, details: Record<string, string>) => void;
}

/** What the flags of every action have in common; each action is parsed with its own. */
interface GivenFlags {
  readonly json?: true;
  readonly everywhere?: true;
  readonly directory?: string;
  readonly principal?: string;
  readonly note?: string;
  readonly expires?: string;
  readonly url?: string;
}

/** The `rules` command. Returns the exit code. */
export async function runRules(rest: readonly string[], context: RulesCommandContext): Promise<number> {
  const { writeError, openStore: open } = context;
  const [name, ...args] = rest;
  const action = requireAction('rules', name, RULE_ACTIONS);
  const { given: flags, words } = parseFlags('rules', RULES_ACTIONS[action].flags, args);
  let rules: Rules | undefined;
  try {
    return await ACTIONS[action](words, flags, {
      ...context,
      open: async () => {
        const hub = context.openHub(flags.url);
        if (!hub && CHANGES.has(action)) checkPerson(context);
        return (rules ??= hub ? rulesOfHub(hub) : rulesOfStore(await open(), context));
      },
    });
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    writeError(printableLines(`claude-code-mcp: ${messageOf(error)}\n`));
    return 1;
  } finally {
    await rules?.close();
  }
}

/** `inactive`: why it decides nothing at present. */
type ListedRule = StandingRule & Pick<ApiRule, 'inactive'>;

/** Where the rules are. */
interface Rules {
  list(): Promise<ListedRule[]>;
  /** All of them or none; returns their ids. */
  create(rules: readonly NewRule[], what: string): Promise<string[]>;
  remove(id: string): Promise<RuleFields>;
  replay(rules: readonly RuleFields[]): Promise<ShownReplay>;
  close(): Promise<void>;
}

type ShownReplay = Omit<ReplayAnswer, 'warnings'>;

/** Whoever sits at an interactive terminal outside any session is the person that the hub runs for. */
const AUTHOR = { id: PERSON, role: 'admin' } as const;

function rulesOfStore(store: Store, { now, record }: RulesCommandContext): Rules {
  const manager = new RuleManager(store, now);
  return {
    list: async () =>
      Promise.all(
        (await manager.list()).map(async (rule) => {
          const inactive = await inactivity(rule, store, now());
          return { ...rule, ...(inactive && { inactive }) };
        }),
      ),
    async create(rules, what) {
      const ids = (await manager.create(rules, AUTHOR)).map(({ id }) => id);
      for (const id of ids) record(`${what}: ${id}`, {});
      return ids;
    },
    async remove(id) {
      const rule = await manager.remove(id, AUTHOR);
      record(`rule removed: ${id}`, {});
      return rule;
    },
    async replay(rules) {
      const { requests, ...counts } = await replayRules(
        rules.map((rule, at) => ({
          ...{ id: String(at), createdBy: '', createdAt: 0, enabled: true, uses: 0 },
          ...rule,
        })),
        store,
        now() - REPLAY_DAYS * DAY_MS,
      );
      return { ...counts, requests: requests.map(({ at, ...request }) => ({ ...request, at: iso(at) })) };
    },
    close: () => store.close(),
  };
}

function rulesOfHub(api: HubApi): Rules {
  const path = '/api/v1/rules';
  return {
    async list() {
      const { rules } = await api.get<RulesAnswer>(path);
      return rules.map(({ author: _a, warnings: _w, mayChange: _m, ...rule }) => {
        const { createdAt, expiresAt, lastUsedAt, ...fields } = rule;
        return {
          ...fields,
          createdAt: Date.parse(createdAt),
          ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
          ...(lastUsedAt !== undefined && { lastUsedAt: Date.parse(lastUsedAt) }),
        };
      });
    },
    async create(rules) {
      try {
        return (await api.post<MadeRules>(`${path}/batch`, { rules: rules.map(contentOf) })).ids;
      } catch (error) {
        if (error instanceof ApiFailure && error.status < 500) throw error;
        throw new DomainError(
          'UNAVAILABLE',
          `The hub did not confirm it (${messageOf(error)}). Either all of it was made or nothing; "rules list" shows which.`,
        );
      }
    },
    async remove(id) {
      return (await api.delete<RuleAnswer>(`${path}/${encodeURIComponent(id)}`)).rule;
    },
    async replay(rules) {
      const fields = rules.map((rule) => ruleFields.strip().parse(rule));
      return api.post<ReplayAnswer>(`${path}/replay`, { rules: fields, days: REPLAY_DAYS });
    },
    close: () => Promise.resolve(),
  };
}

/** As files and the API have it. */
function contentOf({ expiresAt, ...fields }: NewRule): RuleFields & { expiresAt?: string } {
  return { ...fields, ...(expiresAt !== undefined && { expiresAt: iso(expiresAt) }) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

interface OpenContext extends RulesCommandContext {
  /** Refuses whoever may not change them. To be called when the words of the command are known to be right. */
  readonly open: () => Promise<Rules>;
}

type Action = (words: readonly string[], flags: GivenFlags, context: OpenContext) => Promise<number>;

const list: Action = async (words, { json }, { open, terminal }) => {
  refuseWords('rules list', words);
  const all = await (await open()).list();
  if (json) terminal.write(`${JSON.stringify(all.map(asJson), null, 2)}\n`);
  else if (all.length === 0) terminal.write('There are no rules.\n');
  else for (const rule of all) terminal.write(`${describe(rule)}\n`);
  return 0;
};

const add: Action = async (words, flags, context) => {
  const fields = given(words, flags, context);
  const expiresAt = expiry(flags, context);
  return make([{ ...fields, ...(expiresAt !== undefined && { expiresAt }) }], 'rule made', context);
};

const remove: Action = async (words, _flags, { open, terminal }) => {
  const [id, ...others] = words;
  if (id === undefined || others.length > 0) throw new SettingsError('rules remove takes the id of a rule.');
  const rules = await open();
  const meant = id.length < SHORTEST_ID ? [] : (await rules.list()).filter((rule) => rule.id.startsWith(id));
  const { id: whole } = meant.length > 0 ? theOneWith(id, meant, (rule) => rule.id) : { id };
  terminal.write(`Removed: ${ruleText(await rules.remove(whole))}\n`);
  return 0;
};

const replay: Action = async (words, flags, { open, terminal, ...context }) => {
  const isRule = RULE_DECISIONS.some((decision) => decision === words[0]);
  const fields = isRule ? [given(words, flags, context)] : await fromFile(words, flags, context);
  const found = await (await open()).replay(fields);
  terminal.write(flags.json ? `${JSON.stringify(found, null, 2)}\n` : replayText(found));
  return 0;
};

const importRules: Action = async (words, flags, context) =>
  make(await fromFile(words, flags, context), 'rule imported', context);

/** Importing makes a rule anew, so one that decides nothing is left out. */
const exportRules: Action = async (words, _flags, { open, terminal, writeError }) => {
  refuseWords('rules export', words);
  const known = await (await open()).list();
  const active = known.filter(({ inactive }) => inactive === undefined);
  const all = active.map((rule) => contentOf({ ...ruleFields.strip().parse(rule), expiresAt: rule.expiresAt }));
  const left = known.length - active.length;
  if (left > 0) writeError(`Left out: ${counted(left, 'rule')} not in force; see "rules list".\n`);
  terminal.write(`${JSON.stringify({ rules: all }, null, 2)}\n`);
  return 0;
};

const ACTIONS = { list, add, remove, replay, import: importRules, export: exportRules } satisfies Record<
  keyof typeof RULES_ACTIONS,
  Action
>;
const RULE_ACTIONS = Object.keys(ACTIONS) as (keyof typeof ACTIONS)[];
const CHANGES: ReadonlySet<string> = new Set(['add', 'remove', 'import']);

function checkPerson({ refusal, terminal }: RulesCommandContext): void {
  if (refusal !== undefined) throw new DomainError('PERMISSION_DENIED', refusal);
  if (!terminal.canAsk)
    throw new DomainError(
      'PERMISSION_DENIED',
      'Only a person changes rules: run this in an interactive terminal, or set CLAUDE_CODE_MCP_TOKEN to a token of the hub.',
    );
}

/** Shows what the rules would have done, and makes them if the person agrees. */
async function make(fields: readonly NewRule[], what: string, context: OpenContext): Promise<number> {
  const { open, terminal } = context;
  const rules = await open();
  for (const rule of fields) terminal.write(`${ruleText(rule)}\n`);
  for (const warning of new Set(fields.flatMap((rule) => notesOn(rule)))) terminal.write(printable`Note: ${warning}\n`);
  terminal.write(replayText(await rules.replay(fields)));
  const question = fields.length === 1 ? 'Make this rule?' : `Make these ${fields.length} rules?`;
  // Without a terminal it is a script with a token.
  if (terminal.canAsk && !(await askYesNo(terminal, question))) return 1;
  for (const id of await rules.create(fields, what)) terminal.write(`${id}\n`);
  return 0;
}

function replayText({ considered, matched, allowed, denied, requests }: ShownReplay): string {
  const lines = [
    considered === 0
      ? `There were no requests in the last ${REPLAY_DAYS} days to compare with.`
      : `This matches ${matched} of ${counted(considered, 'request')} in the last ${REPLAY_DAYS} days; people allowed ${allowed} and denied ${denied} of those.`,
    ...requests
      .slice(0, SHOWN_REQUESTS)
      .map(
        ({ decision, by, summary, at }) =>
          printable`  ${decision === 'deny' ? 'DENIED ' : 'allowed'}  ${localTime(Date.parse(at))}  ${by}  ${summary}`,
      ),
    ...(matched > SHOWN_REQUESTS ? [`  … and ${matched - SHOWN_REQUESTS} more`] : []),
  ];
  return `${lines.join('\n')}\n`;
}

function given(words: readonly string[], flags: GivenFlags, context: Pick<RulesCommandContext, 'cwd'>): RuleFields {
  const [decision, text, ...others] = words;
  if (decision === undefined || text === undefined || others.length > 0)
    throw new SettingsError("A rule is a decision and a tool: allow 'Bash(npm test)'.");
  const { principal, note } = flags;
  const parsed = ruleFields.safeParse({
    decision: requireWord('A rule cannot decide', decision, RULE_DECISIONS),
    ...splitRule(text),
    ...scopeGiven(flags, context),
    ...(principal !== undefined && { principal }),
    ...(note !== undefined && { note }),
  });
  if (!parsed.success)
    throw new SettingsError(`A rule cannot be written like that: ${parsed.error.issues[0]?.message ?? ''}`);
  return parsed.data;
}

function splitRule(text: string): { tool: string; match?: string } {
  const { tool, match } = withMatch({ decision: 'allow', tool: text });
  return { tool, ...(match !== undefined && { match }) };
}

async function fromFile(
  words: readonly string[],
  flags: GivenFlags,
  context: Pick<RulesCommandContext, 'cwd'>,
): Promise<NewRule[]> {
  const [name, ...others] = words;
  if (name === undefined || others.length > 0) throw new SettingsError('Give one file or pack.');
  const pack = PACKS.find((one) => one.name === name);
  const parsed = ruleFile.safeParse(pack ?? (await jsonOf(name)));
  if (!parsed.success) throw new DomainError('INVALID_ARGUMENT', `${name} is not a file of rules.`);
  // What a file leaves open is for this repository, unless the person says otherwise.
  const scope = scopeGiven(flags, context);
  return parsed.data.rules.map(({ id: _id, expiresAt, ...fields }) => ({
    ...scope,
    ...fields,
    ...(flags.directory !== undefined && scope),
    ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
  }));
}

/** Undefined where the file is not JSON. */
async function jsonOf(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const packs = PACKS.map(({ name }) => name);
    return requireWord('There is no file or pack', file, packs);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function scopeGiven(
  { directory, everywhere, url }: GivenFlags,
  { cwd }: Pick<RulesCommandContext, 'cwd'>,
): Pick<RuleFields, 'directory'> {
  if (url !== undefined && directory === undefined && !everywhere)
    throw new SettingsError('With --url give --directory, which is one of that machine, or --everywhere.');
  if (everywhere && directory !== undefined) throw new SettingsError('Give --directory or --everywhere.');
  if (everywhere) return {};
  if (directory === undefined) return { directory: scopeOf(cwd).repository };
  // That of another machine is for its hub to know.
  return { directory: url === undefined ? existingDirectory('--directory', path.resolve(cwd, directory)) : directory };
}

function expiry({ expires }: GivenFlags, { now }: Pick<RulesCommandContext, 'now'>): number | undefined {
  if (expires === undefined) return undefined;
  const lifetime = parseDuration(expires);
  if (lifetime === undefined) throw new SettingsError('--expires takes a number and a unit: 90m, 12h, 30d, 4w or 1y.');
  return now() + lifetime;
}

function ruleText({ decision, tool, match, directory, principal, note }: RuleFields): string {
  const what = match === undefined ? printable`${tool}` : printable`${tool}(${match})`;
  const where = directory === undefined ? 'everywhere' : printable`in ${directory}`;
  const whose = principal === undefined ? [] : [printable`for ${principal}`];
  return [decision, what, where, ...whose, ...(note === undefined ? [] : [printable`(${note})`])].join('  ');
}

function describe(rule: ListedRule): string {
  const { id, createdBy, createdAt, expiresAt, uses, lastUsedAt, inactive } = rule;
  const expiry = expiresAt === undefined ? '' : localTime(expiresAt);
  const states = { disabled: 'disabled', expired: `expired ${expiry}`, author: 'off: its author has lost the role' };
  const state = inactive ? [states[inactive]] : expiry === '' ? [] : [`expires ${expiry}`];
  const used = lastUsedAt === undefined ? 'never used' : `used ${counted(uses, 'time')}, last ${localTime(lastUsedAt)}`;
  return [id, ruleText(rule), printable`by ${createdBy} ${localTime(createdAt)}`, used, ...state].join('  ');
}

function asJson({ createdAt, expiresAt, lastUsedAt, ...rule }: ListedRule): Record<string, unknown> {
  return {
    ...rule,
    createdAt: iso(createdAt),
    ...(expiresAt !== undefined && { expiresAt: iso(expiresAt) }),
    ...(lastUsedAt !== undefined && { lastUsedAt: iso(lastUsedAt) }),
  };
}

/** The command on this machine: the store of the state directory, or the one that `--store` names. */
export async function runRulesHere(
  rest: readonly string[],
  settings: Settings,
  source: HubClientContext,
): Promise<number> {
  const warn = (line: string): void => void process.stderr.write(`claude-code-mcp warn: ${line}\n`);
  const audit = openAudit({ path: settings.auditLog, warn });
  try {
    return await runRules(rest, {
      openStore: async () => openStore({ url: await storeInUse(settings), stateDir: settings.stateDir, warn }),
      openHub: (url) => {
        const hasToken = (source.env[TOKEN_VARIABLE] ?? '').trim() !== '';
        if (url === undefined && !(hasToken && readHubRecord(settings.stateDir))) return undefined;
        return openHub({ command: 'rules', settings, source, url, isInteractive: false }).api;
      },
      refusal: runsBelowSession(settings) ? refusedBelowSession('claude-code-mcp rules') : undefined,
      terminal: openTerminal(),
      writeError: (text) => void process.stderr.write(text),
      cwd: process.cwd(),
      now: Date.now,
      record: (what, details) => audit.record({ kind: 'server', who: 'human', what, outcome: 'ok', details }),
    });
  } finally {
    await audit.close();
  }
}
