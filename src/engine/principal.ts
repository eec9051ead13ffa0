/** Whoever acts on the engine. A session belongs to the principal that started it. */
export interface Principal {
  readonly id: string;
  readonly name: string;
  /** `local`: the user this process runs as. `program`: a server that an embedding program made. */
  readonly kind: 'local' | 'program';
  readonly role: 'caller';
}

/** The one client over stdio, and a program that uses the engine directly. */
export const LOCAL: Principal = { id: 'local', name: 'local', kind: 'local', role: 'caller' };
