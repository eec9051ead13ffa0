import type { PrincipalKind, Role } from '../../schema/enums.ts';

/** An actor on the engine. A session belongs to the principal that started it. */
export interface Principal {
  readonly id: string;
  readonly name: string;
  readonly kind: PrincipalKind;
  readonly role: Role;
  /** A person uses it, so its form answers are a person's. */
  readonly attended: boolean;
}

/** The one client over stdio, and a program that uses the engine directly. */
export const LOCAL: Principal = { id: 'local', name: 'local', kind: 'local', role: 'caller', attended: true };

/** Whether it acts for the user this process runs as, whose disk and working directory these are. */
export function isThisUser({ kind }: Pick<Principal, 'kind'>): boolean {
  return kind === 'local' || kind === 'program';
}

const NESTED_PREFIX = 'nested:';

/** A client that runs inside this session. */
export function nestedIn(session: string): Principal {
  const id = `${NESTED_PREFIX}${session}`;
  return { id, name: `inside ${session}`, kind: 'nested', role: 'caller', attended: false };
}

/** The session that a principal runs inside. */
export function sessionAround({ id, kind }: Pick<Principal, 'id' | 'kind'>): string | undefined {
  return kind === 'nested' ? id.slice(NESTED_PREFIX.length) : undefined;
}
