import type { ElicitResult, McpServer } from '@modelcontextprotocol/server';
import type { OpenRequest } from '../../engine/requests.ts';
import type { FormPresenter } from '../../engine/services.ts';
import type { Session } from '../../engine/session.ts';
import { messageOf } from '../../errors/errors.ts';
import { abilitiesOf, handshakeOf, showsForms } from './client-forms.ts';
import type { FormDesk, Returned } from './form-desk.ts';
import type { Form } from './form.ts';

/** The longest a timer can be set for. The request's own time-out ends the form; the SDK's would end it after 60 s. */
const NO_TIMEOUT_MS = 2_147_483_647;

/** Asks the user of a client of up to 2025-11-25 as soon as a request arises, whether a call is under way or not. */
export class PushedForms implements FormPresenter {
  readonly #server: McpServer['server'];
  readonly #desk: FormDesk;

  constructor(server: McpServer['server'], desk: FormDesk) {
    this.#server = server;
    this.#desk = desk;
  }

  get available(): boolean {
    return showsForms(handshakeOf(this.#server).capabilities);
  }

  present(session: Session, request: OpenRequest): void {
    const form = this.#desk.show(session, request, abilitiesOf(handshakeOf(this.#server).version));
    if (form) void this.#ask(form, request).then((returned) => this.#desk.returned(session, request, returned));
  }

  /** Withdrawn, with a notification to the client, as soon as the request is settled elsewhere. */
  async #ask({ message, requestedSchema }: Form, { settled }: OpenRequest): Promise<Returned> {
    try {
      const result = await this.#server.request(
        { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } },
        { signal: settled, timeout: NO_TIMEOUT_MS },
      );
      return toReturned(result);
    } catch (error) {
      return { action: 'failed', why: messageOf(error) };
    }
  }
}

function toReturned({ action, content }: ElicitResult): Returned {
  return action === 'accept' ? { action, content } : { action };
}
