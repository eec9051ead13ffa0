import { IDEMPOTENCY_META_KEY, type CallOnce } from '../mcp/call-tool.ts';
import type { Once } from './once.ts';

/** Runs a tool call once per key in its `_meta`. */
export function onceForTools(once: Once): CallOnce {
  return async ({ principal, key, tool, args }, run) => {
    const call = { keyName: IDEMPOTENCY_META_KEY, key, principal, operation: tool, path: 'tools/call', input: args };
    return (await once.run(call, run)).answer;
  };
}
