import { SETTING_SOURCES } from '../../schema/enums.ts';
import type { SessionOptionName, SessionOptions } from '../../schema/session-options.ts';

/** Fields of an agent that grant no permissions. An allowlist of what is known to be harmless. */
const HARMLESS_AGENT_FIELDS: ReadonlySet<string> = new Set([
  'description',
  'prompt',
  'model',
  'maxTurns',
  'effort',
  'disallowedTools',
  'background',
  'autoCompactWindow',
  'omitClaudeMd',
  'criticalSystemReminder_EXPERIMENTAL',
]);

/** The values of the sandbox's switches that tighten it. */
const TIGHTER_SANDBOX: Readonly<Record<string, boolean>> = {
  enabled: true,
  failIfUnavailable: true,
  allowUnsandboxedCommands: false,
  autoAllowBashIfSandboxed: false,
};

/** Values that remove permissions, or grant none, for options that could grant some. */
export function isHarmless(name: SessionOptionName, asked: SessionOptions): boolean {
  switch (name) {
    case 'allowedTools':
    case 'additionalDirectories':
    case 'plugins':
    case 'env':
    case 'mcpServers':
    case 'settings':
    case 'skills':
    case 'toolAliases':
      return isEmpty(asked[name]);
    case 'agents':
      return Object.values(asked.agents ?? {}).every(grantsNothing);
    case 'agent':
      // The agents passed along with it are checked separately.
      return asked.agent !== undefined && Object.hasOwn(asked.agents ?? {}, asked.agent);
    case 'sandbox':
      return isTighter(asked.sandbox ?? {});
    case 'settingSources':
      return SETTING_SOURCES.every((source) => asked.settingSources?.includes(source));
    default:
      return false;
  }
}

/** Whether sandboxed commands still need permission is up to Claude Code's defaults unless set here. */
function isTighter(sandbox: Record<string, unknown>): boolean {
  if (sandbox['enabled'] === true && sandbox['autoAllowBashIfSandboxed'] !== false) return false;
  return Object.entries(sandbox).every(([key, value]) => TIGHTER_SANDBOX[key] === value);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function grantsNothing(agent: object): boolean {
  return Object.keys(agent).every((field) => HARMLESS_AGENT_FIELDS.has(field));
}
