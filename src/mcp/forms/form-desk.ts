import type { Engine } from '../../engine/engine.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import type { Session } from '../../engine/session.ts';
import { messageOf } from '../../errors/errors.ts';
import { formFor } from './form-for.ts';
import type { Form, FormAbilities } from './form.ts';

/** What became of a form: what the client sent back, or why nothing usable came. */
export type Returned =
  | { action: 'accept'; content: unknown }
  | { action: 'decline' }
  | { action: 'cancel' }
  | { action: 'failed'; why: string };

/** Knows which requests a person was asked about, so that none is asked twice, and turns what comes back into outcomes. */
export class FormDesk {
  readonly #engine: Engine;
  readonly #shown = new WeakMap<OpenRequest, Form>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  wasShown(request: OpenRequest): boolean {
    return this.#shown.has(request);
  }

  /** The form of a request that nobody was asked about yet; from now on it counts as asked. */
  show(session: Session, request: OpenRequest, abilities: FormAbilities): Form | undefined {
    if (this.wasShown(request)) return undefined;
    const form = formFor({ id: session.id, cwd: session.options.cwd }, request, abilities);
    this.#shown.set(request, form);
    return form;
  }

  /** It never left the server. */
  takeBack(request: OpenRequest): void {
    this.#shown.delete(request);
  }

  returned(session: Session, request: OpenRequest, returned: Returned): void {
    // Settled elsewhere: the first answer counts.
    if (session.findRequest(request.id) !== request) return;
    const form = this.#shown.get(request);
    if (!form) return;
    switch (returned.action) {
      case 'accept':
        return this.#accepted(session, request, form, returned.content);
      case 'decline':
        return this.#engine.respondAsHuman(session, request.id, { decision: 'deny', message: form.declined });
      case 'cancel':
        return this.#giveUp(session, request, 'the form was closed without an answer');
      case 'failed':
        return this.#giveUp(session, request, `the form failed: ${returned.why}`);
    }
  }

  #accepted(session: Session, request: OpenRequest, form: Form, content: unknown): void {
    const answer = form.read(content);
    if (!answer) return this.#giveUp(session, request, 'what the form returned does not fit what was asked');
    try {
      this.#engine.respondAsHuman(session, request.id, answer);
    } catch (error) {
      this.#giveUp(session, request, messageOf(error));
    }
  }

  /** Left to the tool answer, unless only a person may give one. */
  #giveUp(session: Session, request: OpenRequest, why: string): void {
    if (this.#engine.settings.approvals !== 'human') return;
    this.#engine.refuse(
      session,
      request.id,
      `Only a person may decide this here, and ${why}. It was not refused by a person: go on without it if you can, or say what you need and stop.`,
    );
  }
}
