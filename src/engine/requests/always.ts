import type { PermissionAsk, PermissionUpdate } from '../../driver/permission-ask.ts';
import { digestOf } from './grants.ts';
import { COMMAND_TOOLS } from '../rules/tool-rules.ts';

export type LastingRule = Extract<PermissionUpdate, { type: 'addRules' }>;
export type OfferedAsk = Pick<PermissionAsk, 'toolName' | 'input' | 'suggestions' | 'onceOnly'>;

/**
 * What "always allow" grants, for this session only. `rules` are given to Claude Code. `exact` is kept by the server:
 * Claude Code asks again each time, and only the same call is allowed.
 */
export type AlwaysOffer =
  | { readonly kind: 'rules'; readonly rules: readonly LastingRule[] }
  | { readonly kind: 'exact' }
  | { readonly kind: 'nothing' };

/**
 * Programs whose rules are passed on as Claude Code suggests them. Whatever their arguments and input are, they run no
 * other program, interpret nothing as code and use no network; Claude Code checks the paths they write itself. A program
 * that is missing here costs another question at most: a list of dangerous ones would never be complete. git is missing
 * because it runs what a configuration names, and plain files make a repository with a configuration.
 */
const HARMLESS: ReadonlySet<string> = new Set([
  'cat',
  'cp',
  'echo',
  'head',
  'ls',
  'mkdir',
  'mv',
  'printf',
  'rmdir',
  'tail',
  'touch',
  'wc',
]);

/**
 * Claude Code matches a rule against each part of a command line, not against the line: `Bash(sh)`, its suggestion for
 * `curl … | sh`, allows `echo anything | sh`. Unless every suggested rule is harmless, the exact call is offered instead.
 */
export function alwaysOffer(ask: OfferedAsk): AlwaysOffer {
  const rules = suggestedRules(ask);
  if (rules.length === 0) return { kind: 'nothing' };
  if (rules.every((update) => update.rules.every(isHarmless))) return { kind: 'rules', rules };
  return typeof ask.input['command'] === 'string' ? { kind: 'exact' } : { kind: 'nothing' };
}

/**
 * The suggested rules that allow. What is suggested along with them (`setMode acceptEdits` with a mere `touch`,
 * `addDirectories`) would open far more than what was asked about, the latter also past the operator's directories.
 */
function suggestedRules({ suggestions, onceOnly }: OfferedAsk): LastingRule[] {
  if (onceOnly) return [];
  return (suggestions ?? []).filter(
    (update): update is LastingRule =>
      update.type === 'addRules' && update.behavior === 'allow' && update.rules.length > 0,
  );
}

function isHarmless({ toolName, ruleContent }: LastingRule['rules'][number]): boolean {
  if (!COMMAND_TOOLS.has(toolName)) return true;
  // The names mean something else in PowerShell.
  if (toolName !== 'Bash') return false;
  const fixed = ruleContent?.replace(/( |:)\*$/, '') ?? '';
  // Plain words: a wildcard or an operator among them could stand for another program.
  if (!/^[\w@%+=,./ -]+$/.test(fixed)) return false;
  return HARMLESS.has(fixed.split(' ', 1)[0] ?? '');
}

/** Identifies a call. Its description is only a comment by Claude; everything else changes what runs. */
export function exactCall(toolName: string, { description: _comment, ...input }: Record<string, unknown>): string {
  return digestOf([toolName, input]);
}

/** What a policy has to permit for an exact call to be allowed from now on. */
export function exactRule(toolName: string, input: Record<string, unknown>): LastingRule {
  const rules = [{ toolName, ruleContent: String(input['command']) }];
  return { type: 'addRules', behavior: 'allow', destination: 'session', rules };
}
