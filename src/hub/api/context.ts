import type { Settings } from '../../config/load-settings.ts';
import type { EngineClient } from '../../engine/engine-client.ts';
import type { HubRef } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import type { Principal } from '../../engine/principal.ts';
import type { Once } from '../once.ts';
import type { Tokens } from '../tokens.ts';

/** What the routes of the API need of the hub. What is read comes from the store, what is changed goes through a client. */
export interface ApiContext {
  readonly store: Store;
  /** This life of this hub. */
  readonly hub: HubRef;
  readonly version: string;
  readonly settings: Pick<Settings, 'approvals' | 'auditLog' | 'allowSensitiveSessionDetails'>;
  readonly tokens: Pick<Tokens, 'create' | 'list' | 'revoke'>;
  /** Carries out what has a key once. */
  readonly once: Once;
  /** The engine as this principal may use it. */
  clientFor(principal: Principal): EngineClient;
  /** Resolves when everything so far is stored; awaited before anything is reported. */
  stored(): Promise<void>;
  /** Time of day. */
  now(): number;
  /** Told of every call, for whoever measures. */
  served?(method: string, route: string, status: number, seconds: number): void;
  /** Failures that nobody foresaw, for the log. */
  report(error: unknown): void;
}
