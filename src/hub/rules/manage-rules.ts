import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { realPath } from '../../engine/rules/directories.ts';
import { isInRepository } from '../../engine/rules/standing/place.ts';
import { ruleProblem } from '../../engine/rules/standing/rules-file.ts';
import { ruleWarnings } from '../../engine/rules/standing/suggest.ts';
import { DomainError } from '../../errors/errors.ts';
import type { Role } from '../../schema/enums.ts';
import { type RuleContent, type RuleFields, type StandingRule, ruleFile } from '../../schema/standing-rules.ts';
import type { Store } from '../../store/contract.ts';
import { isKnownTool, nearestTool } from '../../views/tool-names.ts';
import { LOCAL } from '../../engine/rules/access.ts';
import gitLocal from '../../engine/rules/standing/packs/git-local.json' with { type: 'json' };
import reading from '../../engine/rules/standing/packs/reading.json' with { type: 'json' };

const MAX_RULES = 10_000;

/** Who makes or changes a rule: always a person. */
export interface RuleAuthor {
  readonly id: string;
  readonly role: Role;
}

export interface NewRule extends RuleFields {
  readonly expiresAt?: number | undefined;
}

export type RulePatch = { readonly [Field in keyof NewRule]?: NewRule[Field] | null | undefined } & {
  readonly enabled?: boolean | undefined;
};

/** What whoever makes a rule should know, one line each. */
export function notesOn(rule: RuleFields): string[] {
  const { tool } = rule;
  if (tool.startsWith('mcp__') || isKnownTool(tool)) return ruleWarnings(rule);
  const nearest = nearestTool(tool);
  const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  return [
    `Claude Code has no tool called ${tool}: the rule decides nothing, unless a plugin brings one.${meant}`,
    ...ruleWarnings(rule),
  ];
}

/** The rules of a store, as people change them. Each change is checked here, wherever it comes from. */
export class RuleManager {
  readonly #store: Pick<Store, 'rules' | 'rule' | 'write'>;
  readonly #now: () => number;

  constructor(store: Pick<Store, 'rules' | 'rule' | 'write'>, now: () => number = Date.now) {
    this.#store = store;
    this.#now = now;
  }

  /** Newest first. */
  async list(): Promise<StandingRule[]> {
    return (await this.#store.rules()).sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1));
  }

  /** `knownRepository`: one that a request named; it may be on another machine. */
  async create(rules: readonly NewRule[], author: RuleAuthor, knownRepository?: string): Promise<StandingRule[]> {
    const known = await this.#store.rules();
    if (known.length + rules.length > MAX_RULES)
      throw new DomainError('INVALID_ARGUMENT', `There can be ${String(MAX_RULES)} rules.`);
    // Made together, they are listed in the order in which they were given.
    const at = this.#now();
    const made = rules.map((fields, index) => {
      const rule = this.#checked(fields, author, knownRepository);
      const id = `r_${randomBytes(9).toString('base64url')}`;
      return { ...rule, id, createdBy: author.id, createdAt: at - index, enabled: true };
    });
    await this.#store.write(made.map((rule) => ({ type: 'rule.put', rule })));
    return made.map((rule) => ({ ...rule, uses: 0 }));
  }

  /** Whoever changes a rule answers for it from now on. */
  async change(id: string, patch: RulePatch, author: RuleAuthor): Promise<StandingRule> {
    const rule = await this.#require(id, author);
    const { uses, lastUsedAt, ...before } = rule;
    const { enabled = before.enabled, ...fields } = patch;
    const merged = Object.entries({ ...before, ...fields, enabled }).filter(([, value]) => value !== null);
    const { id: _, createdBy, createdAt, ...changed } = Object.fromEntries(merged) as unknown as RuleContent;
    const { enabled: _enabled, ...asked } = changed;
    // Anyone who may change it may switch it off, also if it could not be made any more.
    const isOff = !enabled && Object.keys(fields).length === 0;
    const checked = isOff ? asked : this.#checked(asked, author, before.directory);
    const after: RuleContent = { ...checked, id, enabled, createdAt, createdBy: isOff ? createdBy : author.id };
    await this.#store.write([{ type: 'rule.put', rule: after }]);
    return { ...after, uses, ...(lastUsedAt !== undefined && { lastUsedAt }) };
  }

  async remove(id: string, author: RuleAuthor): Promise<StandingRule> {
    const rule = await this.#require(id, author);
    await this.#store.write([{ type: 'rule.remove', ruleId: id }]);
    return rule;
  }

  async #require(id: string, author: RuleAuthor): Promise<StandingRule> {
    const rule = await this.#store.rule(id);
    if (!rule) throw new DomainError('INVALID_ARGUMENT', 'There is no such rule.');
    if (!mayDecideOn(author.role, rule)) throw tooWide();
    return rule;
  }

  #checked(given: NewRule, author: RuleAuthor, knownRepository: string | undefined): NewRule {
    const { expiresAt, ...fields } = given;
    const problem = ruleProblem(fields);
    if (problem !== undefined) throw new DomainError('INVALID_ARGUMENT', `This rule cannot be made. ${problem}`);
    if (expiresAt !== undefined && expiresAt <= this.#now())
      throw new DomainError('INVALID_ARGUMENT', 'expiresAt: must be in the future.');
    const directory = fields.directory === undefined ? undefined : realPath(path.resolve(fields.directory));
    const isKnown = directory !== undefined && directory === knownRepository;
    if (!mayDecideOn(author.role, { directory })) throw tooWide();
    if (author.role !== 'admin' && !isKnown && !isInRepository(directory ?? '')) throw tooWide();
    return {
      ...fields,
      ...(directory !== undefined && { directory }),
      ...(expiresAt !== undefined && { expiresAt }),
    };
  }
}

/** `Bash(npm test)` is accepted as the tool, as it is written everywhere else. */
export function withMatch(fields: RuleFields): RuleFields {
  const [, tool, match] = /^(\w+)\((.+)\)$/s.exec(fields.tool) ?? [];
  return tool === undefined || match === undefined || fields.match !== undefined ? fields : { ...fields, tool, match };
}

function tooWide(): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    'An approver makes rules for one repository (directory); a rule for more than that is an admin’s.',
  );
}

/** The person at this machine: in the dashboard, and over the hub's socket at an interactive terminal. */
export const PERSON = 'person';
const PEOPLE_HERE: ReadonlySet<string> = new Set([PERSON, LOCAL.id]);

type Scope = Pick<StandingRule, 'directory'>;

/** An approver makes rules for a repository; wider ones are an admin's. */
export function mayDecideOn(role: Role, { directory }: Scope): boolean {
  return role === 'admin' || (role === 'approver' && directory !== undefined);
}

/**
 * Whether the author of a rule still has the role for it. An OAuth subject has none that could be looked up: when it comes
 * with a lesser one, its rules are disabled.
 */
export async function authorHasRole(
  rule: Pick<StandingRule, 'createdBy' | 'directory'>,
  tokens: Pick<Store, 'token'>,
  now: number,
): Promise<boolean> {
  const { createdBy } = rule;
  if (PEOPLE_HERE.has(createdBy) || createdBy.startsWith('oauth:')) return true;
  if (!createdBy.startsWith('token:')) return false;
  const token = await tokens.token(createdBy.slice('token:'.length));
  if (!token || token.revokedAt !== undefined || (token.expiresAt ?? Infinity) <= now) return false;
  return mayDecideOn(token.role, rule);
}

/** Why a rule decides nothing at present. */
export async function inactivity(
  rule: StandingRule,
  tokens: Pick<Store, 'token'>,
  now: number,
): Promise<'disabled' | 'expired' | 'author' | undefined> {
  if (!rule.enabled) return 'disabled';
  if ((rule.expiresAt ?? Infinity) <= now) return 'expired';
  return (await authorHasRole(rule, tokens, now)) ? undefined : 'author';
}

export interface RulePack {
  readonly name: string;
  readonly description: string;
  readonly rules: RuleFields[];
}

/** What comes with the program. A rule of a pack is in force once a person has made it their own. */
export const PACKS: RulePack[] = [reading, gitLocal].map((pack) => {
  const { name = '', description = '', rules } = ruleFile.parse(pack);
  return { name, description, rules: rules.map(({ id: _id, expiresAt: _expires, ...fields }) => fields) };
});
