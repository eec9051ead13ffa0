import type { McpServer } from '@modelcontextprotocol/server';
import type { AskingSession, ConnectedClient, FormEnd } from '../../engine/requests/approvals.ts';
import type { Principal } from '../../engine/rules/principal.ts';
import type { OpenRequest } from '../../engine/requests/requests.ts';
import type { Rules } from '../../engine/rules/rules.ts';
import { messageOf } from '../../errors/errors.ts';
import { abilitiesOf, handshakeOf, showsForms } from './client-forms.ts';
import { formFor } from './form-for.ts';
import { formEnd, type Form, type FormReturn } from './form.ts';

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

  async showForm(session: AskingSession, request: OpenRequest): Promise<FormEnd> {
    const form = formFor(session, request, abilitiesOf(handshakeOf(this.#server).version));
    return formEnd(form, await this.#ask(form, request));
  }

  /** Withdrawn, with a notification to the client, as soon as the request is settled elsewhere. */
  async #ask({ message, requestedSchema }: Form, { settled }: OpenRequest): Promise<FormReturn> {
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
