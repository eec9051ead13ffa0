import path from 'node:path';
import type { AskRecord, RequestRecord } from '../../../schema/events.ts';
import type { RuleFields } from '../../../schema/standing-rules.ts';
import { allowedCalls, fetchedHost } from './allowed-calls.ts';
import { openCommand } from './prefixes.ts';
import { RuleSet } from './rule-set.ts';
import type { RulePlace } from './place.ts';
import { simpleCommand } from './words.ts';

export type RuleSuggestion =
  | { readonly rule: RuleFields }
  /** Why each such call has to be asked about. */
  | { readonly problem: string };

/** The rule that would have answered a request, to be made for its repository. */
export function suggestRule(
  ask: AskRecord,
  { cwd = '/', scope, own }: Pick<RequestRecord, 'cwd' | 'scope' | 'own'>,
): RuleSuggestion {
  if (own) return { problem: 'The server asks this itself, each time.' };
  if (ask.needsPerson !== undefined) return { problem: `A person has to decide each time: ${ask.needsPerson}.` };
  const directory = scope?.repository ?? cwd;
  const match = matchFor(ask, scope?.directory ?? cwd, cwd, directory);
  const rule: RuleFields = { decision: 'allow', tool: ask.toolName, ...(match !== undefined && { match }), directory };
  const calls = allowedCalls(rule);
  if ('problem' in calls) return calls;
  const stored = { ...rule, id: 'x', createdBy: '', createdAt: 0, enabled: true, uses: 0 };
  const verdict = new RuleSet([stored]).decide(ask, placeOfRequest('', { cwd, scope }), 0);
  return verdict ? { rule } : { problem: 'No rule can tell this call from others that do more.' };
}

/** Where a stored request was asked. Links are not resolved again: the machine may be another one. */
export function placeOfRequest(owner: string, { cwd = '/', scope }: Pick<RequestRecord, 'cwd' | 'scope'>): RulePlace {
  return { owner, cwd, roots: [{ real: cwd, countsAs: scope?.directory ?? cwd }], realPath: (file) => file };
}

function matchFor(
  { toolName, input, mcpServer }: AskRecord,
  counted: string,
  cwd: string,
  directory: string,
): string | undefined {
  if (toolName === 'Bash') return typeof input['command'] === 'string' ? input['command'].trim() : undefined;
  if (toolName === 'WebFetch') {
    const host = fetchedHost({ toolName, input });
    return host === undefined ? undefined : `domain:${host}`;
  }
  const file = input['file_path'] ?? input['notebook_path'];
  if (mcpServer || typeof file !== 'string') return undefined;
  const inCheckout = path.join(counted, path.relative(cwd, path.resolve(cwd, file)));
  return path.relative(directory, inCheckout).replaceAll(path.sep, '/');
}

/** What whoever makes a rule should know, one line each. */
export function ruleWarnings({ decision, tool, match, directory }: RuleFields): string[] {
  const words = tool === 'Bash' && decision === 'allow' ? simpleCommand(match ?? '') : undefined;
  return [
    ...(words && !openCommand(words)
      ? ["It may run the project's own code: whoever can change that code decides what the command does."]
      : []),
    ...(decision === 'allow' && directory === undefined ? ['It holds in every directory.'] : []),
    ...(tool.startsWith('mcp__') && decision === 'allow' ? ['It allows every input of this tool.'] : []),
  ];
}
