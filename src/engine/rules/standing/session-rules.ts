import { setImmediate } from 'node:timers/promises';
import type { PermissionAsk, PermissionUpdate } from '../../../driver/permission-ask.ts';
import type { EventBody, RequestRecord, SessionEvent } from '../../../schema/events.ts';
import type { SessionOptions } from '../../../schema/session-options.ts';
import { COMMAND_TOOLS } from '../../../schema/enums.ts';
import type { Refusal } from '../../conversation/activity.ts';
import type { StandingRules } from '../../ports.ts';
import { realPath } from '../directories.ts';
import { isWithin, mayHideRepository, placeOf, scopeOf, type RulePlace } from './place.ts';
import type { RuleVerdict } from './rule-set.ts';
import { simpleCommand } from './words.ts';

/** What the rules need to know of a session. */
export interface RuledSession {
  readonly owner: string;
  readonly options: SessionOptions;
  readonly directory: string | undefined;
}

/** Where the shell of a session may be: where it started, somewhere in the session's directories, or anywhere. */
type Whereabouts = 'start' | 'inside' | 'anywhere';

const MAX_READ_CHARS = 20_000;

/** Standing rules as they concern one session. */
export class SessionRules {
  readonly #rules: StandingRules;
  readonly #session: RuledSession;
  readonly #now: () => number;
  #whereabouts: Whereabouts = 'start';
  /** Directories that an answer has added. */
  readonly #added: string[] = [];
  /** The permissions that its process was last given, as JSON. */
  imposed = '';

  constructor(rules: StandingRules, session: RuledSession, now: () => number) {
    this.#rules = rules;
    this.#session = session;
    this.#now = now;
  }

  /** Where it works, for rules that are made later. */
  get scope(): RequestRecord['scope'] {
    const { directory } = this.#session;
    return directory === undefined ? undefined : scopeOf(directory);
  }

  /** What the rules say about a call that Claude Code asks about. */
  async verdict(ask: PermissionAsk): Promise<RuleVerdict | undefined> {
    if (this.#rules.inForce.rules.length === 0) return undefined;
    // Commands that ran before this call may still be on their way here.
    await setImmediate();
    const verdict = this.#rules.inForce.decide(ask, this.#place(), this.#now());
    if (verdict?.decision !== 'allow') return verdict;
    if (ask.needsPerson !== undefined || !(await this.#rules.confirm(verdict.rule))) return undefined;
    return verdict;
  }

  /** Whether a rule makes Claude Code refuse such a call without asking. */
  refusalOf(toolName: string, input: Record<string, unknown>): Refusal | undefined {
    const { inForce } = this.#rules;
    if (inForce.rules.length === 0) return undefined;
    const rule = inForce.denying({ toolName, input }, this.#place(), this.#now());
    if (!rule) return undefined;
    const { id, createdBy: author, match = '' } = rule;
    return { by: 'rule', wholeTool: match === '' || match === '*', rule: { id, author } };
  }

  heard(body: EventBody): void {
    if (body.kind !== 'message') return;
    for (const block of body.blocks)
      if (block.kind === 'tool_call' && COMMAND_TOOLS.has(block.toolName)) this.#ran(block.input['command']);
  }

  /** Of a session from an earlier process, which may have run anything that is no longer known. */
  restore(events: readonly SessionEvent[], droppedThrough: number): void {
    for (const { body } of events) this.heard(body);
    if (droppedThrough > 0) this.#whereabouts = 'anywhere';
  }

  /** An answer has changed what Claude Code may do in this session. */
  granted(updates: readonly PermissionUpdate[]): void {
    for (const update of updates) if (update.type === 'addDirectories') this.#added.push(...update.directories);
  }

  #place(): RulePlace {
    const { owner, options, directory } = this.#session;
    const place = placeOf(owner, [directory ?? '/', ...(options.additionalDirectories ?? []), ...this.#added]);
    const atStart = this.#whereabouts === 'start';
    return {
      ...place,
      cwd: atStart ? place.cwd : undefined,
      mayBeElsewhere: directory === undefined || this.#whereabouts === 'anywhere',
      mayMisleadGit: !atStart || mayHideRepository(directory ?? '/'),
    };
  }

  /** Claude Code's shell keeps the directory that a command changes to. */
  #ran(command: unknown): void {
    if (this.#whereabouts === 'anywhere' || typeof command !== 'string' || !mayChangeDirectory(command)) return;
    this.#whereabouts = this.#staysInside(command) ? 'inside' : 'anywhere';
  }

  /** `cd` to a directory of the session, alone or before other commands that do not. */
  #staysInside(command: string): boolean {
    const [, named = '', rest = ''] = /^\s*cd +([^;&|\s]+)\s*(?:$|(?:&&|;)(.*))/s.exec(command) ?? [];
    const [, directory] = simpleCommand(`x ${named}`) ?? [];
    if (directory === undefined || mayChangeDirectory(rest) || /(?:^|\/)\.\.(?:\/|$)/.test(directory)) return false;
    const { cwd, roots } = this.#place();
    if (!directory.startsWith('/') && cwd === undefined) return false;
    const real = realPath(directory.startsWith('/') ? directory : `${cwd ?? ''}/${directory}`);
    return roots.some((root) => isWithin(real, root.real));
  }
}

/** What can change the directory of the shell that it runs in. */
const CHANGES_DIRECTORY =
  /(?<![\w./-])(?:cd|chdir|pushd|popd|eval|source|trap|mapfile|readarray|compgen|complete|bind|fc|autoload)(?![\w./-])/;
/** Words before a command that do not change which one it is: reserved words, assignments and redirections. */
const BEFORE_COMMAND =
  /^(?:then|do|else|elif|if|while|until|time|command|builtin|exec|noglob|nocorrect|[!{]|-.*|\w+(?:\[.*\])?\+?=.*|\d*[<>].*)$/;

/**
 * Errs on the side of yes, in one pass: quotes are not parsed, the names above count wherever they stand, and a command
 * whose name is only known when it runs may be any. A command that is simple is known.
 */
export function mayChangeDirectory(command: string): boolean {
  if (command.length > MAX_READ_CHARS) return true;
  if (simpleCommand(command)) return false;
  const bare = command.replace(/["'\\]/g, '').replaceAll('`', '$(');
  return CHANGES_DIRECTORY.test(bare) || bare.split(/[;&|()\n]/).some(namesAnyCommand);
}

function namesAnyCommand(part: string): boolean {
  const words = part.split(/\s+/).filter((word) => word !== '');
  const start = words.findIndex((word) => !BEFORE_COMMAND.test(word));
  // An assignment or a redirection goes on after a blank if it was quoted.
  const isSure = start >= 0 && !words.slice(0, start).some((word) => /[=<>]/.test(word));
  return (isSure ? words.slice(start, start + 1) : words).some(
    (word) => word === '.' || (/[$*?[{]/.test(word) && !PLAIN_WORDS.has(word)),
  );
}

const PLAIN_WORDS: ReadonlySet<string> = new Set(['[', '[[', '{']);
