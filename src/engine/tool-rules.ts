/** `Bash`, `Bash(git diff *)`, `Edit(src/**)`, `mcp__server`: a tool's name and perhaps what of it. */
interface ToolRule {
  toolName: string;
  specifier: string | undefined;
}

/** The field of a tool's input that a rule's specifier speaks of. */
const SPECIFIED_FIELDS = ['command', 'file_path', 'notebook_path', 'path', 'url', 'query', 'skill', 'subagent_type'];

/** The first rule that refuses this call, if any does. */
export function refusingRule(
  rules: readonly string[],
  toolName: string,
  input: Record<string, unknown>,
): string | undefined {
  return rules.find((rule) => matches(parseRule(rule), toolName, input));
}

function parseRule(rule: string): ToolRule {
  const [, toolName, specifier] = /^([^(]+)\((.*)\)$/s.exec(rule.trim()) ?? [];
  return toolName === undefined ? { toolName: rule.trim(), specifier: undefined } : { toolName, specifier };
}

function matches(rule: ToolRule, toolName: string, input: Record<string, unknown>): boolean {
  const named =
    rule.toolName === toolName || (rule.toolName.startsWith('mcp__') && toolName.startsWith(`${rule.toolName}__`));
  if (!named) return false;
  if (rule.specifier === undefined || rule.specifier === '*') return true;
  const pattern = toPattern(rule.specifier);
  return SPECIFIED_FIELDS.some((field) => {
    const value = input[field];
    return typeof value === 'string' && pattern.test(value.trim());
  });
}

/** `git diff *` and the older `git diff:*` both mean the command alone or with anything behind it. */
function toPattern(specifier: string): RegExp {
  const escaped = specifier
    .replace(/^domain:/, '*')
    .replace(/(:\*| \*)$/, '\u0000')
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replace('\u0000', '(?:[ :].*)?');
  return new RegExp(`^${escaped}$`, 's');
}
