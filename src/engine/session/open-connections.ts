import { DomainError } from '../../errors/errors.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { Rules } from '../rules/rules.ts';
import type { Session } from './session.ts';

/** Connections that bring an environment, while they are open. */
export class OpenConnections {
  readonly #open = new Set<ConnectedClient>();

  /** Returns how to remove it. */
  add(connection: ConnectedClient): () => void {
    this.#open.add(connection);
    return () => this.#open.delete(connection);
  }

  /** One that belongs to the session's owner, has everything it lacks, and may drive it. */
  rulesFor(session: Session): Rules | undefined {
    return [...this.#open].find((connection) => brings(connection, session))?.rules;
  }
}

function brings({ principal, rules }: ConnectedClient, session: Session): boolean {
  if (!rules || principal.id !== session.owner.id) return false;
  if (!session.missing.every((name) => rules.baseEnv[name] !== undefined)) return false;
  try {
    rules.checkMayDrive(session);
    return true;
  } catch (error) {
    if (error instanceof DomainError) return false;
    throw error;
  }
}
