import path from 'node:path';
import { RULE_DECISIONS, type RuleDecision } from '../../../schema/enums.ts';
import type { StandingRule } from '../../../schema/standing-rules.ts';
import {
  absoluteSpecifier,
  COMMAND_TOOLS,
  commandMatches,
  commandsIn,
  FAMILIES,
  names,
  otherMatches,
  PATH_FIELDS,
  tooLongToMatch,
} from '../tool-rules.ts';
import { matchesPath } from '../wildcards.ts';
import {
  allowedCalls,
  commandWords,
  fetchedHost,
  followsTable,
  globCovers,
  isPlainTool,
  namedFile,
  type AllowedCalls,
  type RuleCall,
} from './allowed-calls.ts';
import { countedPath, isWithin, type RulePlace } from './place.ts';

/** What the rules say about a call. */
export interface RuleVerdict {
  readonly decision: RuleDecision;
  readonly rule: StandingRule;
}

/** Asked of a person, whatever the rules say: what Claude plans and wants to know. */
export const NEVER_DECIDED: ReadonlySet<string> = new Set(['ExitPlanMode', 'AskUserQuestion']);

/**
 * A set of standing rules, indexed so that ten thousand of them decide a call in well under a millisecond. Pure: the same
 * call at the same place has the same outcome. `deny` is stronger than `ask`, and `ask` than `allow`; of several rules
 * that decide alike, the first counts.
 */
export class RuleSet {
  readonly rules: readonly StandingRule[];
  readonly #restrictions: Readonly<Record<'deny' | 'ask', Restrictions>>;
  readonly #permissions: Permissions;

  /** Those that are in force; the others are left out by whoever knows why they are not. */
  constructor(rules: readonly StandingRule[]) {
    this.rules = rules;
    const of = (decision: RuleDecision): StandingRule[] => rules.filter((rule) => rule.decision === decision);
    this.#restrictions = { deny: new Restrictions(of('deny')), ask: new Restrictions(of('ask')) };
    this.#permissions = new Permissions(of('allow'));
  }

  decide(call: RuleCall, place: RulePlace, now: number): RuleVerdict | undefined {
    if (this.rules.length === 0 || NEVER_DECIDED.has(call.toolName)) return undefined;
    for (const decision of RULE_DECISIONS) {
      const index = decision === 'allow' ? this.#permissions : this.#restrictions[decision];
      const rule = index.find(call, place, now);
      if (rule) return { decision, rule };
    }
    return undefined;
  }

  /** The rule that denies a call, if one does. */
  denying(call: RuleCall, place: RulePlace, now: number): StandingRule | undefined {
    return NEVER_DECIDED.has(call.toolName) ? undefined : this.#restrictions.deny.find(call, place, now);
  }

  /**
   * `deny` and `ask` rules as Claude Code reads them, for a process at this place: they then also hold where it would not
   * ask.
   */
  imposed(place: RulePlace, now: number): Readonly<Record<'deny' | 'ask', readonly string[]>> {
    return { deny: this.#restrictions.deny.imposed(place, now), ask: this.#restrictions.ask.imposed(place, now) };
  }
}

function isCurrent({ expiresAt, principal }: StandingRule, place: RulePlace, now: number): boolean {
  return (expiresAt === undefined || now < expiresAt) && (principal === undefined || principal === place.owner);
}

/** By what each of them can be found with. */
class Index<Entry> {
  readonly #entries = new Map<string, Entry[]>();

  add(key: string, entry: Entry): void {
    const found = this.#entries.get(key);
    if (found) found.push(entry);
    else this.#entries.set(key, [entry]);
  }

  get(key: string): readonly Entry[] {
    return this.#entries.get(key) ?? [];
  }
}

// ── what allows ──────────────────────────────────────────────────────────────────────────────────────────────────

type OpenCalls = Extract<AllowedCalls, { kind: 'open command' }>;

/** Words cannot contain it. */
const SEPARATOR = '\0';
/** No open rule that is worth having begins with more words. */
const MAX_HEAD_WORDS = 40;

class Permissions {
  readonly #commands = new Index<StandingRule>();
  readonly #openCommands = new Index<{ readonly rule: StandingRule; readonly calls: OpenCalls }>();
  readonly #files = new Index<{ readonly rule: StandingRule; readonly glob: string }>();
  readonly #others = new Index<StandingRule>();

  constructor(rules: readonly StandingRule[]) {
    for (const rule of rules) {
      const calls = allowedCalls(rule);
      if ('problem' in calls) continue;
      switch (calls.kind) {
        case 'command':
          this.#commands.add(calls.words.join(SEPARATOR), rule);
          break;
        case 'open command':
          this.#openCommands.add(calls.words.join(SEPARATOR), { rule, calls });
          break;
        case 'files':
          this.#files.add(fileKey(rule.tool, calls.glob), { rule, glob: calls.glob });
          break;
        case 'host':
          this.#others.add(calls.host, rule);
          break;
        case 'tool':
          this.#others.add(rule.tool, rule);
      }
    }
  }

  find(call: RuleCall, place: RulePlace, now: number): StandingRule | undefined {
    const words = commandWords(call);
    if (words) return mayRun(words, place) ? this.#findCommand(words, place, now) : undefined;
    const file = namedFile(call, place);
    if (file !== undefined) return this.#findFile(call.toolName, file, place, now);
    const key = isPlainTool(call) ? call.toolName : fetchedHost(call);
    return key === undefined ? undefined : this.#others.get(key).find((rule) => reaches(rule, place, now));
  }

  #findCommand(words: readonly string[], place: RulePlace, now: number): StandingRule | undefined {
    const exact = this.#commands.get(words.join(SEPARATOR)).find((rule) => reaches(rule, place, now));
    if (exact) return exact;
    let head = '';
    for (const word of words.slice(0, MAX_HEAD_WORDS)) {
      head = head === '' ? word : `${head}${SEPARATOR}${word}`;
      const found = this.#openCommands
        .get(head)
        .find(({ rule, calls }) => reaches(rule, place, now) && followsTable(calls, words, place));
      if (found) return found.rule;
    }
    return undefined;
  }

  #findFile(toolName: string, file: string, place: RulePlace, now: number): StandingRule | undefined {
    const candidates = [...this.#files.get(`${toolName} `), ...this.#files.get(fileKey(toolName, path.basename(file)))];
    return candidates.find(
      ({ rule, glob }) => isCurrent(rule, place, now) && globCovers(glob, rule.directory, file, place),
    )?.rule;
  }
}

/** Whether a command does here what a rule means by it. */
function mayRun([program = '']: readonly string[], { mayBeElsewhere, mayMisleadGit }: RulePlace): boolean {
  return mayBeElsewhere !== true && !(mayMisleadGit === true && path.basename(program) === 'git');
}

/** A glob that ends in a name is looked up by that name. */
function fileKey(toolName: string, glob: string): string {
  const name = glob.slice(glob.lastIndexOf('/') + 1);
  return `${toolName} ${name.includes('*') ? '' : name}`;
}

/**
 * Whether an allow rule holds for the session: a command may run in any of its directories, so the rule must be for all of
 * them.
 */
function reaches(rule: StandingRule, place: RulePlace, now: number): boolean {
  const { directory } = rule;
  if (!isCurrent(rule, place, now)) return false;
  return directory === undefined || place.roots.every(({ countsAs }) => isWithin(countsAs, directory));
}

// ── what denies, or has to be asked ──────────────────────────────────────────────────────────────────────────────

const ALL = /^\*?$/;

/** Errs on the other side: every part of a command line counts, and a rule holds wherever the session could reach. */
class Restrictions {
  readonly #rules: readonly StandingRule[];
  /** Those that name a tool and nothing else. */
  readonly #tools: readonly StandingRule[];
  readonly #byProgram = new Index<StandingRule>();
  /** Those whose first word is not known. */
  readonly #anyProgram: readonly StandingRule[];
  readonly #details = new Index<StandingRule>();

  constructor(rules: readonly StandingRule[]) {
    this.#rules = rules;
    this.#tools = rules.filter(({ match = '' }) => ALL.test(match));
    const specific = rules.filter(({ match = '' }) => !ALL.test(match));
    const anyProgram: StandingRule[] = [];
    for (const rule of specific) {
      if (!COMMAND_TOOLS.has(rule.tool)) this.#details.add(rule.tool, rule);
      else {
        const [program = ''] = (rule.match ?? '').trim().split(/[\s:]/);
        if (program.includes('*')) anyProgram.push(rule);
        else this.#byProgram.add(program, rule);
      }
    }
    this.#anyProgram = anyProgram;
  }

  find(call: RuleCall, place: RulePlace, now: number): StandingRule | undefined {
    if (this.#rules.length === 0) return undefined;
    const holds = (rule: StandingRule): boolean => isCurrent(rule, place, now) && touches(rule, place);
    const named = this.#tools.find((rule) => covers(rule.tool, call.toolName) && holds(rule));
    if (named) return named;
    if (COMMAND_TOOLS.has(call.toolName)) return this.#findCommand(call, holds);
    return [...familyOf(call.toolName)]
      .flatMap((tool) => this.#details.get(tool))
      .find((rule) => isCurrent(rule, place, now) && concerns(rule, call, place));
  }

  #findCommand(call: RuleCall, holds: (rule: StandingRule) => boolean): StandingRule | undefined {
    const { command } = call.input;
    if (typeof command !== 'string' || tooLongToMatch(call.input))
      return this.#rules.find((rule) => covers(rule.tool, call.toolName) && holds(rule));
    const commands = commandsIn(command);
    const programs = new Set(commands.map((one) => one.split(' ', 1)[0] ?? ''));
    const candidates = [...[...programs].flatMap((program) => this.#byProgram.get(program)), ...this.#anyProgram];
    return candidates.find(
      (rule) => rule.tool === call.toolName && commandMatches(rule.match ?? '', commands) && holds(rule),
    );
  }

  imposed(place: RulePlace, now: number): string[] {
    const rules = this.#rules.filter(
      (rule) => !NEVER_DECIDED.has(rule.tool) && isCurrent(rule, place, now) && touches(rule, place),
    );
    return [...new Set(rules.flatMap((rule) => imposedRules(rule, place)))];
  }
}

function covers(rule: string, toolName: string): boolean {
  return names(rule, toolName) || FAMILIES.get(rule)?.includes(toolName) === true;
}

/** The tools under whose name a rule about this tool may be written. */
function familyOf(toolName: string): Set<string> {
  const families = [...FAMILIES].filter(([, members]) => members.includes(toolName)).map(([tool]) => tool);
  return new Set([toolName, ...families]);
}

/** Whether the session works in the rule's directory, around it or below it. */
function touches({ directory }: StandingRule, place: RulePlace): boolean {
  if (directory === undefined) return true;
  return place.roots.some(
    ({ real, countsAs }) =>
      isWithin(countsAs, directory) ||
      isWithin(directory, countsAs) ||
      isWithin(real, directory) ||
      isWithin(directory, real),
  );
}

function concerns({ match = '', directory }: StandingRule, { input }: RuleCall, place: RulePlace): boolean {
  if (tooLongToMatch(input)) return true;
  const given = PATH_FIELDS.map((field) => input[field]).filter((file) => typeof file === 'string' && file !== '');
  const files = (given as string[]).flatMap((file) => {
    const absolute = path.resolve(place.cwd ?? place.roots[0]?.real ?? path.sep, file);
    const real = place.realPath(absolute);
    return [absolute, real, countedPath(place, real)];
  });
  const bases = directory === undefined ? place.roots.flatMap(({ real, countsAs }) => [real, countsAs]) : [directory];
  // Everything below a directory is meant with it.
  const patterns = bases.map((base) => absoluteSpecifier(match.replace(/(?<=.)\/(?:\*\*)?$/, ''), base));
  if (patterns.some((pattern) => files.some((file) => matchesPath(pattern, file)))) return true;
  return otherMatches(match, input);
}

/** File rules of Claude Code: `Edit` covers every tool that changes files, `Read` every tool that reads them. */
const IMPOSED_AS: ReadonlyMap<string, string> = new Map([
  ['Write', 'Edit'],
  ['NotebookEdit', 'Edit'],
  ['Grep', 'Read'],
  ['Glob', 'Read'],
]);
const FILE_RULES: ReadonlySet<string> = new Set(['Edit', 'Read']);

function imposedRules({ tool, match = '', directory }: StandingRule, place: RulePlace): string[] {
  if (ALL.test(match)) return [tool, ...(FAMILIES.get(tool) ?? [])];
  const written = IMPOSED_AS.get(tool) ?? tool;
  if (!FILE_RULES.has(written)) return commandForms(tool, match).map((form) => `${tool}(${form})`);
  return imposedBases(directory, place).map((base) => {
    const pattern = absoluteSpecifier(match.replace(/\/$/, ''), base).replaceAll('\\', '/');
    return `${written}(/${pattern.startsWith('/') ? pattern : `/${pattern}`})`;
  });
}

/**
 * Claude Code (2.1.325) takes `git -C dir push` for another command than `git push`, and after a wildcard, ` *` means at
 * least one more word.
 */
function commandForms(tool: string, match: string): string[] {
  const [, command, open] = /^\s*git\s+(\w.*?)((?: |:)\*)?$/.exec(match) ?? [];
  if (command === undefined || !COMMAND_TOOLS.has(tool)) return [match];
  return [match, `git -* ${command}`, ...(open === undefined ? [] : [`git -* ${command} *`])];
}

/** Where on disk a rule's directory is for this session: in a worktree too. */
function imposedBases(directory: string | undefined, { roots }: RulePlace): string[] {
  if (directory === undefined) return roots.map(({ real }) => real);
  const moved = roots.flatMap(({ real, countsAs }) =>
    real !== countsAs && isWithin(directory, countsAs) ? [path.join(real, path.relative(countsAs, directory))] : [],
  );
  return [directory, ...moved];
}
