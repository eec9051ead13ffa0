import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Asker, ConnectedClient, FormEnd } from '../../engine/requests/approvals.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { Rules } from '../../engine/rules/rules.ts';
import { messageOf } from '../../errors/errors.ts';
import type { RequestRecord } from '../../schema/events.ts';
import { formFor } from './request-forms.ts';
import { formEnd, type FormAbilities, type Form, type FormReturn } from './form.ts';

/** A bare `elicitation: {}` is the older way to declare forms. */
export function showsForms(capabilities: ClientCapabilities | undefined): boolean {
  const elicitation = capabilities?.elicitation;
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

function abilitiesOf(protocolVersion: string): FormAbilities {
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

/** The longest possible timer. The request's own timeout ends the form; the SDK's would end it after 60 s. */
const NO_TIMEOUT_MS = 2_147_483_647;

/** A client up to 2025-11-25: its user is asked as soon as a request arises, whether a call is in progress or not. */
export class LegacyClient implements ConnectedClient {
  readonly principal: Principal;
  readonly rules: Rules | undefined;
  readonly #server: McpServer['server'];

  constructor(principal: Principal, server: McpServer['server'], rules?: Rules) {
    this.principal = principal;
    this.rules = rules;
    this.#server = server;
  }

  get showsForms(): boolean {
    return showsForms(handshakeOf(this.#server).capabilities);
  }

  async showForm(asker: Asker, request: RequestRecord, settled: AbortSignal): Promise<FormEnd> {
    const form = formFor(asker, request, abilitiesOf(handshakeOf(this.#server).version));
    return formEnd(form, await this.#ask(form, settled));
  }

  /** Withdrawn, with a notification to the client, as soon as the request is settled elsewhere. */
  async #ask({ message, requestedSchema }: Form, settled: AbortSignal): Promise<FormReturn> {
    try {
      return await this.#server.request(
        { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } },
        { signal: settled, timeout: NO_TIMEOUT_MS },
      );
    } catch (error) {
      return { action: 'failed', why: messageOf(error) };
    }
  }
}
