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
