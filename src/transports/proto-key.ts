import type { JSONRPCMessage } from '@modelcontextprotocol/server';

/**
 * The protocol library silently drops an argument named `__proto__`, but nothing a caller writes may be ignored: under
 * this name it gets through and is refused as unknown.
 */
export function keepProtoKey(message: JSONRPCMessage): void {
  const params = 'params' in message ? message.params : undefined;
  const args: unknown = params?.['arguments'];
  if (typeof args !== 'object' || args === null || !Object.hasOwn(args, '__proto__')) return;
  Reflect.deleteProperty(args, '__proto__');
  Object.assign(args, { '"__proto__"': true });
}
