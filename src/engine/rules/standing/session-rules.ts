import { setImmediate } from 'node:timers/promises';
import type { PermissionAsk, PermissionUpdate } from '../../../driver/permission-ask.ts';
import type { EventBody, RequestRecord, SessionEvent } from '../../../schema/events.ts';
import type { SessionOptions } from '../../../schema/session-options.ts';
import { COMMAND_TOOLS } from '../../../schema/enums.ts';
import type { Refusal } from '../../conversation/activity.ts';
import type { StandingRules } from '../../ports.ts';
import { realPath } from '../directories.ts';
import { isWithin, placeOf, scopeOf, type RulePlace } from './place.ts';
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
    return {
      ...place,
      cwd: this.#whereabouts === 'start' ? place.cwd : undefined,
      mayBeElsewhere: directory === undefined || this.#whereabouts === 'anywhere',
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

/** Where a command begins, after words that do not change which one it is. */
const COMMAND_START = /(?:^|[;&|(){}\n`])\s*(?:(?:\w+=\S*|then|do|else|if|while|until|!|time|command|builtin)\s+)*/
  .source;
const CHANGES_DIRECTORY = new RegExp(
  `${COMMAND_START}(?:(?:cd|chdir|pushd|popd|eval|source|\\.)(?=[\\s;&|)]|$)|[^\\s;&|(){}]*\\$)`,
);

/** Errs on the side of yes: quotes are not parsed, and a command whose name is only known when it runs may be any. */
function mayChangeDirectory(command: string): boolean {
  return command.length > MAX_READ_CHARS || CHANGES_DIRECTORY.test(command.replace(/["'\\]/g, ''));
}
