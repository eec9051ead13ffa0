import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { quote, SettingsError } from '../../../config/bad-input.ts';
import { messageOf } from '../../../errors/errors.ts';
import { ruleFile, type RuleFile, type StandingRule } from '../../../schema/standing-rules.ts';
import type { StandingRules } from '../../ports.ts';
import { allowedCalls } from './allowed-calls.ts';
import { NEVER_DECIDED, RuleSet } from './rule-set.ts';

const OTHERS = 0o077;
const MAX_BYTES = 8 * 1024 * 1024;

/** The rules of an embedded server: read once, when it starts. Throws `SettingsError` if they cannot be trusted. */
export function readRulesFile(file: string): StandingRules {
  const { rules } = readPrivately(file);
  const inForce = new RuleSet(
    rules.map(({ id, expiresAt, ...fields }, at): StandingRule => ({
      ...fields,
      id: id ?? `rule-${String(at + 1)}`,
      ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
      ...{ createdBy: 'operator', createdAt: 0, enabled: true, uses: 0 },
    })),
  );
  return {
    inForce,
    confirm: () => Promise.resolve(true),
    used: () => undefined,
    subscribe: () => () => undefined,
  };
}

/** Whoever can write the file decides what Claude Code may do without asking. */
function readPrivately(file: string): RuleFile {
  const problem = (why: string): SettingsError => new SettingsError(`CLAUDE_CODE_MCP_RULES: ${file} ${why}.`);
  let text: string;
  try {
    const handle = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    try {
      const found = fstatSync(handle);
      if (!found.isFile()) throw problem('is not a regular file');
      if (found.size > MAX_BYTES) throw problem('is too large');
      if (process.platform !== 'win32' && (found.mode & OTHERS) !== 0)
        throw problem(`is open to other users; run chmod 600 ${file}`);
      if (process.getuid && found.uid !== process.getuid()) throw problem('belongs to another user');
      text = readFileSync(handle, 'utf8');
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw problem('does not exist');
    throw problem(`cannot be read: ${messageOf(error)}`);
  }
  const parsed = ruleFile.safeParse(jsonIn(text));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw problem(`is not a file of rules: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trimEnd());
  }
  for (const [at, rule] of parsed.data.rules.entries()) {
    const why = ruleProblem(rule);
    if (why !== undefined)
      throw problem(`cannot be used, because of rule ${String(at + 1)}: ${why.replace(/\.$/, '')}`);
  }
  return parsed.data;
}

/** Why a rule cannot be made. */
export function ruleProblem(rule: RuleFile['rules'][number]): string | undefined {
  // It would match nothing, and a deny rule that matches nothing protects nobody.
  if (/[\s()]/.test(rule.tool))
    return `${quote(rule.tool)} is not the name of a tool. What it matches belongs in "match"; in the terminal, in parentheses right after the name.`;
  if (rule.directory !== undefined && !path.isAbsolute(rule.directory))
    return 'The directory must be an absolute path.';
  if (NEVER_DECIDED.has(rule.tool)) return 'Plans and questions are always put to a person.';
  const calls = rule.decision === 'allow' ? allowedCalls(rule) : undefined;
  return calls && 'problem' in calls ? calls.problem : undefined;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
