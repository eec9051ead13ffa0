import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import { Rules } from '../rules/rules.ts';
import type { EngineServices } from '../ports.ts';
import { inCheckout } from '../session/session-worktrees.ts';
import type { Session } from '../session/session.ts';

/**
 * After a restart a session lacks values that are never stored, until a connection provides them: in its environment,
 * or as options.
 */
export async function bringMissing(
  session: Session,
  { baseEnv, policy }: Rules,
  given: SessionOptions,
  services: EngineServices,
): Promise<void> {
  // A process that an earlier hub started has them.
  if (session.missing.length === 0 || session.hasProcess) return;
  const brought = missingOf(session.missing, given);
  const isBrought = (name: string): boolean =>
    name.startsWith('env.')
      ? brought.env?.[name.slice('env.'.length)] !== undefined
      : brought[name as keyof SessionOptions] !== undefined || baseEnv[name] !== undefined;
  const lacking = session.missing.filter((name) => !isBrought(name));
  if (lacking.length > 0)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `Session ${session.id} needs ${lacking.join(', ')} again: secrets are not stored. Pass the options in diskResumeConfig; for variables, use a client that has them in its environment.`,
    );
  // Checked by the same rules as at the start, since the values may differ.
  const { worktree, options, rules } = session;
  const cwd = worktree ? inCheckout(worktree) : options.cwd;
  const where = cwd === undefined ? {} : { cwd };
  await policy.admit(brought, where);
  const admitted = missingOf(session.missing, await rules.policy.admit(brought, where));
  const { settings, access } = rules;
  const context = { settings, cwd: rules.policy.directories.own, baseEnv, access };
  session.adopt(new Rules(context, services), admitted);
}

/** The options that a session lacks. */
function missingOf(
  missing: readonly string[],
  { env = {}, mcpServers, settings, agents }: SessionOptions,
): SessionOptions {
  const variables = Object.entries(env).filter(([name]) => missing.includes(`env.${name}`));
  return {
    ...(variables.length > 0 && { env: Object.fromEntries(variables) }),
    ...(mcpServers && missing.includes('mcpServers') && { mcpServers }),
    ...(settings !== undefined && missing.includes('settings') && { settings }),
    ...(agents && missing.includes('agents') && { agents }),
  };
}

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
