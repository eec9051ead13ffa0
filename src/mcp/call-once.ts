import type { CallToolRequest, CallToolResult, InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import type { Principal } from '../engine/rules/principal.ts';
import { DomainError, formatError } from '../errors/errors.ts';
import { toResult } from './call-tool.ts';

/**
 * In the `_meta` of a tool call: a repeat with the same key gets the first call's answer, and nothing is done twice. A
 * call that changes nothing is simply repeated.
 */
export const IDEMPOTENCY_META_KEY = 'claude-code-mcp/idempotency-key';

type ToolAnswer = CallToolResult | InputRequiredResult;

/** Runs a call once per key. */
export type CallOnce = (
  call: { readonly principal: string; readonly key: string; readonly tool: string; readonly args: unknown },
  run: () => Promise<ToolAnswer>,
) => Promise<ToolAnswer>;

/** With the call's key, if it has one. Problems with the key are reported the way tools report them. */
export async function calledOnce(
  once: CallOnce,
  { params }: CallToolRequest,
  ctx: ServerContext,
  { id: principal }: Principal,
  run: () => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  const key = params._meta?.[IDEMPOTENCY_META_KEY];
  // A call repeated with the answers to its forms continues where it was, and is not a repeat.
  if (key === undefined || ctx.mcpReq.requestState() !== undefined) return run();
  try {
    if (typeof key !== 'string')
      throw new DomainError('INVALID_ARGUMENT', `_meta["${IDEMPOTENCY_META_KEY}"] must be a string.`);
    return await once({ principal, key, tool: params.name, args: params.arguments }, run);
  } catch (error) {
    const failure = formatError(error);
    return { ...toResult({ isError: true, error: failure }), isError: true };
  }
}
