import type { CanUseTool, PermissionResult, PermissionUpdate } from '@anthropic-ai/claude-agent-sdk';

export type { PermissionUpdate };

/** A permission request from Claude Code, verbatim. */
export interface PermissionAsk {
  requestId: string;
  toolName: string;
  input: Record<string, unknown>;
  toolUseId: string;
  agentId: string | undefined;
  title: string | undefined;
  description: string | undefined;
  decisionReason: string | undefined;
  blockedPath: string | undefined;
  suggestions: PermissionUpdate[] | undefined;
  /** Claude Code does not want a permanent rule to be offered. */
  onceOnly: boolean;
  /** Aborted when Claude Code withdraws the question, as on an interrupt. */
  withdrawn: AbortSignal;
}

export type Decision =
  | { behavior: 'allow'; updatedInput?: Record<string, unknown>; updatedPermissions?: PermissionUpdate[] }
  | { behavior: 'deny'; message: string; interrupt?: boolean };

export function toAsk(...[toolName, input, options]: Parameters<CanUseTool>): PermissionAsk {
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
    withdrawn: options.signal,
  };
}

export function toPermissionResult(ask: PermissionAsk, decision: Decision): PermissionResult {
  if (decision.behavior === 'deny') return decision;
  return { ...decision, updatedInput: decision.updatedInput ?? ask.input };
}
