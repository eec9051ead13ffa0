import type { CanUseTool, PermissionResult, PermissionUpdate } from '@anthropic-ai/claude-agent-sdk';
import type { AskRecord } from '../schema/events.ts';

export type { PermissionUpdate };

/** A permission request as received from Claude Code. */
export interface PermissionAsk extends AskRecord {
  /** Aborted when Claude Code withdraws the question, for example on an interrupt. */
  readonly withdrawn: AbortSignal;
}

export type Decision =
  | { behavior: 'allow'; updatedInput?: Record<string, unknown>; updatedPermissions?: PermissionUpdate[] }
  | { behavior: 'deny'; message: string; interrupt?: boolean };

export function toAsk(...[toolName, input, options]: Parameters<CanUseTool>): PermissionAsk {
  const needsPerson = personNeeded(toolName, options);
  return {
    requestId: options.requestId,
    toolName,
    input,
    toolUseId: options.toolUseID,
    agentId: options.agentID,
    title: options.title,
    description: options.description,
    decisionReason: options.decisionReason,
    blockedPath: options.blockedPath,
    suggestions: options.suggestions,
    onceOnly: options.suppressAlwaysAllowRule === true,
    ...(options.mcpServer && { mcpServer: options.mcpServer }),
    ...(needsPerson !== undefined && { needsPerson }),
    withdrawn: options.signal,
  };
}

/** What the SDK (0.3.325) passes on from the control request, beyond what it declares. */
interface UndeclaredOptions {
  readonly decisionReasonType?: string;
  readonly requiresUserInteraction?: unknown;
  readonly serverPolicyAskOnly?: unknown;
  readonly plugin?: unknown;
  readonly serverPrompt?: unknown;
  readonly computerFolder?: unknown;
}

const ASK_RULE = 'an ask rule of the settings matched';
const REASONS: ReadonlyMap<string, string> = new Map([
  ['rule', ASK_RULE],
  ['mode', 'the permission mode asks for it'],
  ['subcommandResults', 'it consists of several commands'],
  ['hook', 'a hook asks for it'],
  ['sandboxOverride', 'it would run outside the sandbox'],
  ['workingDir', 'it reaches outside the working directories'],
  ['safetyCheck', 'a safety check failed'],
  ['classifier', 'a classifier is in doubt'],
]);

/** For these tools Claude Code says whether it asks for no other reason than that nothing allows the call. */
const SAYS_WHETHER_PLAIN = /^(?:Write|Edit|mcp__.*)$/s;

/**
 * Why Claude Code wants a person to see this call, if it says so: nothing else may then answer in their place. A reason
 * that is not known here counts as one.
 */
function personNeeded(toolName: string, options: Parameters<CanUseTool>[2] & UndeclaredOptions): string | undefined {
  const { decisionReasonType: reason, blockedPath, matchedAskRule, serverPolicyAskOnly } = options;
  if (matchedAskRule) return ASK_RULE;
  if (reason !== undefined && reason !== 'other')
    return REASONS.get(reason) ?? 'Claude Code gives a reason that is not known here';
  if (blockedPath !== undefined) return 'it concerns a path that is not allowed';
  if (
    options.requiresUserInteraction === true ||
    options.defaultToNo === true ||
    options.suppressAlwaysAllowRule === true
  )
    return 'Claude Code wants a person to decide';
  if (options.plugin !== undefined) return 'a plugin makes the call';
  if (options.serverPrompt !== undefined || options.computerFolder !== undefined)
    return 'it comes with a text or a folder that a person has to see';
  if (serverPolicyAskOnly === false || (serverPolicyAskOnly !== true && SAYS_WHETHER_PLAIN.test(toolName)))
    return 'something besides the default asks for a person';
  return undefined;
}

export function toPermissionResult(ask: PermissionAsk, decision: Decision): PermissionResult {
  if (decision.behavior === 'deny') return decision;
  return { ...decision, updatedInput: decision.updatedInput ?? ask.input };
}
