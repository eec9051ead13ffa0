import { digestLine } from '../audit/audit-entry.ts';
import type { OpenRequest, Outcome, Source } from './requests.ts';
import type { AuditTrail } from './services.ts';
import type { Session } from './session.ts';
import type { SessionOrigin } from './session-types.ts';
import { roundUsd } from './totals.ts';

type Kind = 'start' | 'request' | 'decision' | 'end';

/** What sessions leave in the audit log: texts as length and digest, never themselves. */
export class SessionTrail {
  readonly #audit: AuditTrail;

  constructor(audit: AuditTrail) {
    this.#audit = audit;
  }

  started(session: Session, origin: SessionOrigin, prompt: string): void {
    this.#record(session, 'start', 'caller', origin.kind, { prompt: digestLine(prompt) });
  }

  startFailed(session: Session, error: string): void {
    this.#record(session, 'end', 'server', 'start failed', {}, error);
  }

  requested(session: Session, { id, kind, ask }: OpenRequest): void {
    this.#record(session, 'request', 'claude', ask.toolName, {
      request: id,
      kind,
      input: digestLine(JSON.stringify(ask.input)),
    });
  }

  settled(session: Session, { id, ask }: OpenRequest, { decision, source }: Outcome): void {
    this.#record(session, 'decision', source, ask.toolName, { request: id }, decision.behavior);
  }

  rested(session: Session): void {
    const who = session.state === 'cancelled' ? 'cancel' : 'claude';
    this.#record(session, 'end', who, session.state, {}, session.result?.errorSubtype);
  }

  #record(
    session: Session,
    kind: Kind,
    who: Source | 'server' | 'claude',
    what: string,
    details: Record<string, string>,
    outcome?: string,
  ): void {
    this.#audit.record({
      kind,
      session: session.id,
      who,
      what,
      ...(outcome !== undefined && { outcome }),
      ...(kind === 'end' && { cost: roundUsd(session.totals.session.costUsd) }),
      ...(Object.keys(details).length > 0 && { details }),
    });
  }
}
