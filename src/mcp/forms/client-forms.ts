import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { FormAbilities } from './form.ts';

/** A bare `elicitation: {}` is the older way to declare forms. */
export function showsForms(capabilities: ClientCapabilities | undefined): boolean {
  const elicitation = capabilities?.elicitation;
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

export function abilitiesOf(protocolVersion: string): FormAbilities {
  return { multiSelect: protocolVersion >= '2025-11-25' };
}

/** A 2026-07-28 client says with each request what it can do. */
export function declaredCapabilities({ mcpReq }: ServerContext): ClientCapabilities | undefined {
  // The SDK has checked the envelope, but its type says nothing about its contents.
  const envelope: { [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities } | undefined = mcpReq.envelope;
  return envelope?.[CLIENT_CAPABILITIES_META_KEY];
}

/** What a client of up to 2025-11-25 said when it connected; the SDK deprecates these in favour of the envelope. */
export function handshakeOf(server: McpServer['server']): {
  capabilities: ClientCapabilities | undefined;
  version: string;
} {
  /* eslint-disable @typescript-eslint/no-deprecated -- such clients send no envelope */
  return { capabilities: server.getClientCapabilities(), version: server.getNegotiatedProtocolVersion() ?? '' };
  /* eslint-enable @typescript-eslint/no-deprecated */
}
